/** Configuration files, and the modules and schemas that they refer to. */
export { readConfigFile, type ConfigFile } from "./config-file.ts";
export { periodicEvalJsonSchema } from "./config-schema.ts";
export { loadVerifierModule } from "./verifier-module.ts";
