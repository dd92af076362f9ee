/** Configuration files, their JSON Schema, and verifier modules. */
export { periodicEvalJsonSchema } from "./config-schema.ts";
export {
  loadVerifierModule,
  readConfigFile,
  type ConfigFile,
  type FlagOverride,
} from "@periodic-eval/data/config";
