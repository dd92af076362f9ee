import { configError } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { parseTrainingConfig, trainingFields } from "../trainer/training-config.ts";

const dpoConfigSchema = z.strictObject({
  ...trainingFields,
  learningRate: z
    .number()
    .nonnegative()
    .default(1e-6)
    .describe(
      "Peak learning rate, reached after warm-up. TRL's default, which suits full fine-tuning; adapters need ten times more.",
    ),
  beta: z
    .number()
    .positive()
    .default(0.1)
    .describe("Strength of the penalty for leaving the reference; τ of the paper for `ipo`."),
  lossType: z
    .enum(["sigmoid", "hinge", "ipo"])
    .default("sigmoid")
    .describe("`sigmoid` (Rafailov et al. 2023), `hinge` (SLiC), `ipo` (Azar et al. 2023)."),
  labelSmoothing: z
    .number()
    .min(0)
    .lt(0.5)
    .default(0)
    .describe("Assumed share of pairs with swapped preference (cDPO, Mitchell 2023); `sigmoid` only."),
  disableDropout: z
    .boolean()
    .default(true)
    .describe(
      "Trains without dropout. The reference runs without it too, so that log-ratios only compare the two models.",
    ),
});

/** Returns the JSON Schema (draft 2020-12) of the configuration, for editors. */
export const dpoConfigJsonSchema = (): Readonly<Record<string, unknown>> =>
  z.toJSONSchema(dpoConfigSchema, { io: "input" });

export type DPOConfig = z.infer<typeof dpoConfigSchema>;

/**
 * Returns the configuration with its defaults.
 *
 * @throws PeriodicEvalError `config` with the path of the wrong option.
 */
export function parseDPOConfig(given: Partial<DPOConfig> = {}): DPOConfig {
  const where = "DPO config";
  const config = parseTrainingConfig(where, dpoConfigSchema, given);
  if (config.labelSmoothing === 0 || config.lossType === "sigmoid") return config;
  throw configError({
    where,
    path: ["labelSmoothing"],
    got: `${config.labelSmoothing} with lossType "${config.lossType}"`,
    expected: '0, or lossType "sigmoid"',
    fix: "Remove labelSmoothing: it is only defined for the sigmoid loss.",
  });
}
