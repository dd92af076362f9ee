/** Configuration files, their JSON Schema, verifier modules, and entries of `evaluations`. */
export { kindOf, openEntry } from "./build-callbacks.ts";
export { periodicEvalJsonSchema } from "./config-schema.ts";
export {
  loadVerifierModule,
  readConfigFile,
  type ConfigFile,
  type FlagOverride,
} from "@periodic-eval/data/config";
