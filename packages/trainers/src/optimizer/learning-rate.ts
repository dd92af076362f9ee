/** Returns the learning rate of an optimizer step. `step` counts completed steps: 0 for the first update. */
export type LearningRate = (step: number) => number;

export interface LearningRateOptions {
  /** The highest rate, reached after warm-up. */
  readonly peak: number;
  /** Optimizer steps of the phase; from here on, all schedules but `constant` return 0. */
  readonly maxSteps: number;
  /** Steps over which the rate rises linearly from 0. Default 0: the first update has the peak rate. */
  readonly warmupSteps?: number;
}

const warmUp = ({ peak, warmupSteps = 0 }: LearningRateOptions, step: number): number | null =>
  step < warmupSteps ? (peak * step) / Math.max(1, warmupSteps) : null;

/** Returns the completed share of the steps after warm-up, in [0, 1]. */
const done = ({ maxSteps, warmupSteps = 0 }: LearningRateOptions, step: number): number =>
  Math.min(1, (step - warmupSteps) / Math.max(1, maxSteps - warmupSteps));

/** Keeps the peak rate after warm-up, as transformers' `get_constant_schedule_with_warmup` (5.23.0). */
export const constant =
  (options: LearningRateOptions): LearningRate =>
  (step) =>
    warmUp(options, step) ?? options.peak;

/** Falls to 0 in a straight line after warm-up, as transformers' `get_linear_schedule_with_warmup` (5.23.0). */
export const linear =
  (options: LearningRateOptions): LearningRate =>
  (step) =>
    warmUp(options, step) ?? options.peak * (1 - done(options, step));

/** Falls to 0 along half a cosine after warm-up, as transformers' `get_cosine_schedule_with_warmup` (5.23.0). */
export const cosine =
  (options: LearningRateOptions): LearningRate =>
  (step) =>
    warmUp(options, step) ?? (options.peak * (1 + Math.cos(Math.PI * done(options, step)))) / 2;

/** Factors that fall from 1 to 0, by the completed share of the decay. */
const decays = {
  linear: (progress: number) => 1 - progress,
  cosine: (progress: number) => (1 + Math.cos(Math.PI * progress)) / 2,
  "1-sqrt": (progress: number) => 1 - Math.sqrt(progress),
};
export type DecayType = keyof typeof decays;

export interface WsdOptions extends LearningRateOptions {
  /** The last steps of the phase, over which the rate falls to 0; at most the steps after warm-up. */
  readonly decaySteps: number;
  /** Default `cosine`. */
  readonly decayType?: DecayType;
}

/**
 * Warm-up, stable, decay: keeps the peak rate until the last `decaySteps`, over which it falls to 0. Equals transformers'
 * `get_wsd_schedule` (5.23.0) with linear warm-up, half a cosine and a minimum rate of 0.
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
