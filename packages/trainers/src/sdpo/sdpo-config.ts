import { PeriodicEvalError } from "@periodic-eval/core";
import { z } from "zod";
import { parseConfig, trainingFields } from "../trainer/training-config.ts";

const { maxGradNorm, weightDecay, decay, adamBetas, adamEpsilon, seed, keepCheckpoints } = trainingFields;

const sdpoConfigSchema = z.strictObject({
  /** Of every update: there is no schedule where nobody knows the length. */
  learningRate: z.number().nonnegative().default(3e-5),
  /** The teacher's share of the mixture, in (0, 1]; 1 is KL(student ‖ teacher) on the drawn tokens alone. */
  alpha: z.number().gt(0).max(1).default(0.5),
  /** The most that an importance ratio counts. */
  isClip: z.number().positive().default(5),
  /** Weight of the KL to the model without its adapter. */
  klRegWeight: z.number().nonnegative().default(0),
  /** `k3`: an unbiased estimate of KL(student ‖ base) on drawn tokens. `claas`: its log-ratio the other way round, as kfallah/CLaaS. */
  klForm: z.enum(["k3", "claas"]).default("k3"),
  /** How many of the teacher's most likely tokens are looked at; all where the vocabulary is smaller. */
  teacherTopK: z.int().positive().default(100),
  /** Who reads the feedback: the model without its adapter, or the model as it stands at each gradient step. */
  teacher: z.enum(["base", "current"]).default("base"),
  /** How the teacher reads it, in the place of the last user turn: `{prompt}` is what stood there. */
  hindsight: z
    .string()
    .refine(
      (text) => /\{prompt\}/.test(text) && /\{feedback\}/.test(text),
      "a text with {prompt} and {feedback}",
    )
    .default(
      "{prompt}\n\nFeedback on an earlier answer to this: {feedback}\nAnswer again, and follow the feedback.",
    ),
  /** Gradient steps on each batch. */
  stepsPerBatch: z.int().positive().default(4),
  /** Examples of a forward and backward pass; those of a larger batch are summed. */
  microBatchSize: z.int().positive().default(4),
  /** Trains without dropout: ratios are then 1 where nothing has been learned yet. */
  disableDropout: z.boolean().default(true),
  maxGradNorm,
  weightDecay,
  decay,
  adamBetas,
  adamEpsilon,
  seed,
  keepCheckpoints,
});

export type SDPOConfig = z.infer<typeof sdpoConfigSchema>;

/** The configuration with its defaults. Throws a `config` error that names the option, and for an unknown one the nearest. */
export const parseSDPOConfig = (given: Partial<SDPOConfig> = {}): SDPOConfig =>
  parseConfig("SDPO config", sdpoConfigSchema, given);

/** Throws a `config` error for what wants a model without its adapter, where there is none. */
export function checkBase({ teacher, klRegWeight }: SDPOConfig, hasBase: boolean): void {
  if (hasBase) return;
  const refuse = (option: string, got: string, fix: string) => {
    throw new PeriodicEvalError({
      code: "config",
      where: `SDPO config ${option}`,
      got: `${got} for a model without an adapter`,
      expected: "a model with a base",
      fix,
    });
  };
  if (teacher === "base")
    refuse("teacher", '"base"', 'Train an adapter (withLora), or use teacher: "current".');
  if (klRegWeight > 0)
    refuse("klRegWeight", String(klRegWeight), "Train an adapter (withLora), or leave it out.");
}
