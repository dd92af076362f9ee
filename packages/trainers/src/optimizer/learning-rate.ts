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

/** How the rate falls from the peak to 0, by the share of the decay that is done. */
const decays = {
  linear: (progress: number) => 1 - progress,
  cosine: (progress: number) => (1 + Math.cos(Math.PI * progress)) / 2,
  "1-sqrt": (progress: number) => 1 - Math.sqrt(progress),
};
export type DecayType = keyof typeof decays;

export interface WsdOptions extends LearningRateOptions {
  /** The last steps of the phase, over which the rate falls; at most those after warm-up. */
  readonly decaySteps: number;
  /** Default `cosine`. */
  readonly decayType?: DecayType;
}

/**
 * Warm-up, stable, decay: the peak rate until the last `decaySteps`, over which it falls to 0; as transformers'
 * `get_wsd_schedule` (5.23.0) with its linear warm-up, half a cosine and a least rate of 0.
 */
export const wsd = (options: WsdOptions): LearningRate => {
  const { peak, maxSteps, decaySteps, decayType = "cosine" } = options;
  return (step) => {
    const rate = warmUp(options, step);
    if (rate !== null) return rate;
    if (step >= maxSteps) return 0;
    return peak * decays[decayType](Math.max(0, step - (maxSteps - decaySteps)) / Math.max(1, decaySteps));
  };
};

export const learningRates = { constant, linear, cosine, wsd };
export type LearningRateName = keyof typeof learningRates;
