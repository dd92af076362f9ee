import { PeriodicEvalError } from "@periodic-eval/core";
import { z } from "zod";
import { parseTrainingConfig, trainingFields } from "../trainer/training-config.ts";

const dpoConfigSchema = z.strictObject({
  ...trainingFields,
  /** The highest, reached after warm-up; TRL's default, which suits all weights: adapters want ten times and more. */
  learningRate: z.number().nonnegative().default(1e-6),
  /** How dear it is to leave the reference; for `ipo` the τ of its paper. */
  beta: z.number().positive().default(0.1),
  /** `sigmoid` (Rafailov et al. 2023), `hinge` (SLiC), `ipo` (Azar et al. 2023). */
  lossType: z.enum(["sigmoid", "hinge", "ipo"]).default("sigmoid"),
  /** Share of pairs whose preference is taken to be the wrong way round (cDPO, Mitchell 2023); of `sigmoid` alone. */
  labelSmoothing: z.number().min(0).lt(0.5).default(0),
  /** Trains without dropout, as the reference is read: log-ratios are then those of the two models alone. */
  disableDropout: z.boolean().default(true),
});

export type DPOConfig = z.infer<typeof dpoConfigSchema>;

/** The configuration with its defaults. Throws a `config` error that names the option, and for an unknown one the nearest. */
export function parseDPOConfig(given: Partial<DPOConfig> = {}): DPOConfig {
  const config = parseTrainingConfig("DPO config", dpoConfigSchema, given);
  if (config.labelSmoothing === 0 || config.lossType === "sigmoid") return config;
  throw new PeriodicEvalError({
    code: "config",
    where: "DPO config labelSmoothing",
    got: `${config.labelSmoothing} with lossType "${config.lossType}"`,
    expected: '0, or lossType "sigmoid"',
    fix: "Leave labelSmoothing out: it is defined for the sigmoid loss alone.",
  });
}
