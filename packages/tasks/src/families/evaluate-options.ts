import type { EvaluableModel, MeasureOptions } from "@periodic-eval/core";
import { parseOptions, positiveInteger, numberFromZero, numberToOne } from "@periodic-eval/contracts/options";
import * as z from "zod";

export type Reduce = "mean" | "sum" | "none";

/** Sampling that a call sets, instead of the evaluation's. Only evaluations that generate take it. */
export interface CallSampling {
  /** 0 decodes greedily. */
  readonly temperature?: number;
  readonly topP?: number;
  /** The most tokens of a completion. */
  readonly maxNewTokens?: number;
  /** Completions per prompt, each a sample; more than one need a temperature above 0. */
  readonly samplesPerPrompt?: number;
  /** Seed of sampled completions: a string, or an integer. */
  readonly seed?: string | number;
}

export interface EvaluateOptions extends Pick<MeasureOptions, "signal" | "guards">, CallSampling {
  /**
   * How samples are combined. `none` returns the score of each sample, in the documents' order: the primary metric of the sample
   * alone. `sum` returns the sum of these scores. `mean` (default) returns the primary metric, as in a snapshot: Σ values / Σ
   * weights, for perplexity the exp of that; it is not the mean of the scores if samples differ in weight, as texts do in tokens.
   */
  readonly reduce?: Reduce;
  /** Also returns token ids and masks, one pair per sample. The model then needs a tokenizer. Default false. */
  readonly returnIntermediates?: boolean;
  /** The most documents measured at a time; default all. */
  readonly chunkSize?: number;
}

/**
 * The sequence of one sample: a prompt with its completion, with the choice that the model prefers, or a text. All samples of a call
 * have the length T of the longest.
 *
 * @property 0 [T] token ids, right-padded with 0.
 * @property 1 [T] 1 at a token, 0 at padding. A sample that was not measured is all padding.
 */
export type Intermediate = readonly [ids: Int32Array, paddingMask: Uint8Array];

/** A value with the sequences of its samples. S samples, as in `reduce: "none"`; T tokens. */
export interface WithIntermediates<V> {
  readonly value: V;
  /** [S] in the order of `reduce: "none"`. */
  readonly intermediates: readonly Intermediate[];
  /** [S][T] 1 at a generated token, or at a scored token in families that do not generate. */
  readonly actionMasks: readonly Uint8Array[];
}

/** A model, or a trainer, whose live weights are then measured. */
export type Evaluable = EvaluableModel | { readonly evaluableModel: EvaluableModel };

/** Null if nothing was scored. */
export type Reduced<M extends Reduce> = M extends "none" ? readonly (number | null)[] : number | null;

/** The value of a measurement, with its sequences if they are asked for. */
export type Evaluated<M extends Reduce, I extends boolean> = I extends true
  ? WithIntermediates<Reduced<M>>
  : Reduced<M>;

/** Options with `reduce` among them. */
export type OptionsWithReduce<M extends Reduce, I extends boolean> = EvaluateOptions & {
  readonly reduce?: M;
  readonly returnIntermediates?: I;
};

/** Options beside a `reduce` that is an argument of its own. */
export type OtherOptions<I extends boolean> = Omit<EvaluateOptions, "reduce"> & {
  readonly returnIntermediates?: I;
};

/** Measures the evaluation once on a model or a trainer, and returns the value of its primary metric. */
export interface EvaluateMethod {
  <const M extends Reduce = "mean", const I extends boolean = false>(
    model: Evaluable,
    options?: OptionsWithReduce<M, I>,
  ): Promise<Evaluated<M, I>>;
  <const M extends Reduce, const I extends boolean = false>(
    model: Evaluable,
    reduce: M,
    options?: OtherOptions<I>,
  ): Promise<Evaluated<M, I>>;
}

const seed = "a string or an integer";

/** Schemas of `CallSampling`. */
export const callSamplingShape = {
  temperature: numberFromZero("0 (greedy) or more").optional(),
  topP: numberToOne("a number above 0 and at most 1").optional(),
  maxNewTokens: positiveInteger.optional(),
  samplesPerPrompt: positiveInteger.optional(),
  seed: z.union([z.string(seed), z.int(seed)], seed).optional(),
} satisfies Record<keyof CallSampling, z.ZodType>;

/** Schema of `EvaluateOptions`. */
const evaluateSchema = z.strictObject({
  ...callSamplingShape,
  reduce: z.enum(["mean", "sum", "none"]).optional(),
  returnIntermediates: z.boolean("true or false").optional(),
  chunkSize: positiveInteger.meta({ fix: "Leave it out to measure all documents at once." }).optional(),
  // `measure` checks these.
  signal: z.unknown().optional(),
  guards: z.unknown().optional(),
} satisfies Record<keyof EvaluateOptions, z.ZodType>);

/**
 * Returns the checked options of `evaluate(options)` or `evaluate(reduce, options)`.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function readEvaluateOptions(
  where: string,
  first: Reduce | EvaluateOptions = {},
  second: EvaluateOptions = {},
): EvaluateOptions {
  const options = typeof first === "string" ? { ...second, reduce: first } : first;
  parseOptions(`${where} options`, evaluateSchema, options);
  return options;
}
