import type { ValuePath } from "@periodic-eval/core";
import type { ConfigFile } from "@periodic-eval/core/config";
import { checked, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { isTrainingFile } from "./eval-block.ts";
import { valueAt } from "./config-paths.ts";

const text = z.string("a non-empty string").min(1, "a non-empty string");
const addresses = "an address such as http://127.0.0.1:8000, or a list of them";
const count = "a positive integer";

/** The keys of `engine` in a file of evaluations. */
const engineFields = {
  vllm: z
    .union([text, z.array(text).min(1)], addresses)
    .describe("Address of a vLLM server, or a list of replicas: http://127.0.0.1:8000."),
  model: text
    .optional()
    .describe(
      "The base model's name on the server. Default: the one under which the server lists the model.",
    ),
  api_key_env: text
    .nullable()
    .optional()
    .describe("Environment variable with the API key; null sends none. Default: VLLM_API_KEY."),
  concurrency: z
    .int(count)
    .positive(count)
    .optional()
    .describe("Requests in flight per replica. Default: 8."),
};

/** The keys of `engine` in a training file. */
export const trainingEngineFields = {
  ...engineFields,
  beside: z
    .boolean("true or false")
    .optional()
    .describe("true (default): measures while training continues. false: training pauses."),
};

export const engineText = "an object such as { vllm: http://127.0.0.1:8000 }";
const engineSchema = z.strictObject(engineFields, engineText);
const trainingEngineSchema = z.strictObject(trainingEngineFields, engineText);

/** A server on which models are measured. */
export type EngineConfig = z.infer<typeof engineSchema>;

/**
 * Parses the key `engine` of a file; undefined if the file has none.
 *
 * @throws PeriodicEvalError `config` with file, line and key.
 */
export function readEngine(file: ConfigFile): EngineConfig | undefined {
  const value = valueAt(file.value, ["engine"]);
  if (value === undefined) return undefined;
  const schema = isTrainingFile(file) ? trainingEngineSchema : engineSchema;
  const written = { where: file.where, pathOf: (option: ValuePath) => ["engine", ...option] };
  return checked(written, () => parseOptions("engine", schema, value));
}
