/** The JSON Schema of the block, and entries of `evaluations`. */
export { kindOf, openEntry } from "./build-callbacks.ts";
export { splitSchedule } from "./schema-parts.ts";
export { periodicEvalJsonSchema } from "./config-schema.ts";
