/** How far the training of a phase has come. */
export interface Progress {
  /** Completed optimizer steps of the phase: 0 before the first. Gradient accumulation is folded in. */
  readonly step: number;
  /** Optimizer steps of the whole phase; null if unknown. */
  readonly maxSteps: number | null;
  /** Completed passes over the data, with fractions: 0 before the first. */
  readonly epoch: number;
  /** Seconds of training, without windows: 0 at the start of the phase. A resumed phase continues the count. */
  readonly elapsedSeconds: number;
  /** Whether training is over, whatever step it reached. An aborted phase is not over: it may be resumed. */
  readonly ended: boolean;
  /**
   * The largest share of the phase so far, step ÷ maxSteps, each as known at its time. It keeps a percent from being crossed twice
   * when maxSteps grows. Set by `advance`; omitted while maxSteps was never known.
   */
  readonly furthest?: { readonly step: number; readonly maxSteps: number };
}

/** A schedule rule, as plain data. A schedule is an array of them, in YAML too. */
export type Trigger =
  | { readonly every: number; readonly unit: "percent" | "steps" | "epochs" | "seconds" }
  | { readonly times: number; readonly per: "phase" }
  | { readonly at: readonly number[]; readonly unit: "percent" | "steps" }
  | { readonly at: "start" | "end" };

/**
 * A threshold that lies in (previous progress, current progress]. `at` is in the trigger's unit (k for the k-th of `times` per
 * phase), 0 for start, null for an end.
 */
export interface Crossing {
  readonly trigger: Trigger;
  readonly at: number | null;
}
