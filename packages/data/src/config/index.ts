/** Configuration files, and modules that they name. Node only. */
export { readConfigFile, type ConfigFile, type FlagOverride } from "./config-file.ts";
export { loadVerifierModule, type VerifierModule } from "./verifier-module.ts";
