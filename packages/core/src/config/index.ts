/** Configuration files, their JSON Schema, and verifier modules. */
export { readConfigFile, type ConfigFile, type FlagOverride } from "./config-file.ts";
export { periodicEvalJsonSchema } from "./config-schema.ts";
export { loadVerifierModule } from "./verifier-module.ts";
