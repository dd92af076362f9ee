/** Learning rate of an optimizer step. `step` counts completed steps: 0 for the first update. */
export type LearningRate = (step: number) => number;

export interface LearningRateOptions {
  /** The highest rate, reached after warm-up. */
  readonly peak: number;
  /** Optimizer steps of the phase; at or beyond it linear and cosine are at 0. */
  readonly maxSteps: number;
  /** Steps over which the rate rises linearly from 0; default 0, and the first update then has the peak rate. */
  readonly warmupSteps?: number;
}

const warmUp = ({ peak, warmupSteps = 0 }: LearningRateOptions, step: number): number | null =>
  step < warmupSteps ? (peak * step) / Math.max(1, warmupSteps) : null;

/** Share of the steps after warm-up that are done, in [0, 1]. */
const done = ({ maxSteps, warmupSteps = 0 }: LearningRateOptions, step: number): number =>
  Math.min(1, (step - warmupSteps) / Math.max(1, maxSteps - warmupSteps));

/** The peak rate throughout, after warm-up; as transformers' `get_constant_schedule_with_warmup` (5.23.0). */
export const constant =
  (options: LearningRateOptions): LearningRate =>
  (step) =>
    warmUp(options, step) ?? options.peak;

/** Down to 0 in a straight line; as transformers' `get_linear_schedule_with_warmup` (5.23.0). */
export const linear =
  (options: LearningRateOptions): LearningRate =>
  (step) =>
    warmUp(options, step) ?? options.peak * (1 - done(options, step));

/** Down to 0 along half a cosine; as transformers' `get_cosine_schedule_with_warmup` (5.23.0). */
export const cosine =
  (options: LearningRateOptions): LearningRate =>
  (step) =>
    warmUp(options, step) ?? (options.peak * (1 + Math.cos(Math.PI * done(options, step)))) / 2;

export const learningRates = { constant, linear, cosine };
export type LearningRateName = keyof typeof learningRates;
