import { PeriodicEvalError } from "@periodic-eval/core";
import { z } from "zod";
import { parseTrainingConfig, trainingFields } from "../trainer/training-config.ts";

const sftConfigSchema = z.strictObject({
  ...trainingFields,
  /**
   * What the loss looks at: `"assistant"`, the tokens of assistant turns, in a row with a prompt those of the completion;
   * `"completion"`, all that follows the prompt; `"full"`, every token but the first. By default conversations are learnt by
   * their assistant turns, text with a prompt by its completion, plain text in full. What a row's form cannot have is an error.
   */
  loss: z.enum(["assistant", "completion", "full"]).nullable().default(null),
  /**
   * Whether rows are put one after the other into rows of up to `maxLength` tokens, which must then be given. Documents do
   * not see each other, and each counts its positions from 0, so that the loss of a token is the same as without.
   * `batchSize` then counts packed rows, and what a row holds is the same in every epoch. Batches hold rows of like length
   * anyway: packing makes steps of even size, hardly faster ones.
   */
  packing: z.boolean().default(false),
});

export type SFTConfig = z.infer<typeof sftConfigSchema>;

/** The configuration with its defaults. Throws a `config` error that names the option, and for an unknown one the nearest. */
export function parseSFTConfig(given: Partial<SFTConfig> = {}): SFTConfig {
  const config = parseTrainingConfig("SFT config", sftConfigSchema, given);
  if (config.packing && config.maxLength === null) {
    throw new PeriodicEvalError({
      code: "config",
      where: "SFT config maxLength",
      got: "none beside packing",
      expected: "the tokens of a packed row",
      fix: "Give maxLength, such as 1024: attention costs its square.",
    });
  }
  return config;
}
