import { configError } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { parseTrainingConfig, trainingFields } from "../trainer/training-config.ts";

const sftConfigSchema = z.strictObject({
  ...trainingFields,
  loss: z
    .enum(["assistant", "completion", "full"])
    .nullable()
    .default(null)
    .describe(
      'The tokens that the loss covers: `"assistant"`, those of assistant turns (of the completion, in a row with a prompt); `"completion"`, everything after the prompt; `"full"`, every token but the first. By default, conversations use `"assistant"`, text with a prompt `"completion"`, plain text `"full"`. A value that does not fit a row\'s form is an error.',
    ),
  packing: z
    .boolean()
    .default(false)
    .describe(
      "Packs rows into longer rows of up to `maxLength` tokens, which is then required. Documents do not see each other and each counts its positions from 0, so that every token has the same loss as without packing. `batchSize` counts packed rows; a packed row holds the same rows in every epoch. Because batches hold rows of similar length anyway, packing makes steps equally large but hardly faster.",
    ),
});

/** Returns the JSON Schema (draft 2020-12) of the configuration, for editors. */
export const sftConfigJsonSchema = (): Readonly<Record<string, unknown>> =>
  z.toJSONSchema(sftConfigSchema, { io: "input" });

export type SFTConfig = z.infer<typeof sftConfigSchema>;

/**
 * Returns the configuration with its defaults.
 *
 * @throws PeriodicEvalError `config` with the path of the wrong option.
 */
export function parseSFTConfig(given: Partial<SFTConfig> = {}): SFTConfig {
  const where = "SFT config";
  const config = parseTrainingConfig(where, sftConfigSchema, given);
  if (config.packing && config.maxLength === null)
    throw configError({
      where,
      path: ["packing"],
      got: "true without `maxLength`",
      expected: "also `maxLength`, the tokens of a packed row",
      fix: "Set maxLength, for example 1024. The cost of attention grows with its square.",
    });
  return config;
}
