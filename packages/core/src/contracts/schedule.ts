/** Where a phase of training stands. */
export interface Progress {
  /** Completed optimizer steps of the phase: 0 before the first. Gradient accumulation is folded in. */
  readonly step: number;
  /** Optimizer steps of the whole phase; null where it is not known. */
  readonly maxSteps: number | null;
  /** Completed passes over the data, with fractions: 0 before the first. */
  readonly epoch: number;
  /** Seconds of training, those of windows left out; 0 at the begin of the phase, carried on by a resume. */
  readonly elapsedSeconds: number;
  /** True once training is over, whatever step it reached. An aborted phase is not over: it may be resumed. */
  readonly ended: boolean;
  /**
   * The largest share of the phase so far, step ÷ maxSteps, each as known at its time: what keeps a percent from firing
   * twice when maxSteps grows. Set by `advance`; left out while maxSteps was never known.
   */
  readonly furthest?: { readonly step: number; readonly maxSteps: number };
}

/** Plain data naming thresholds; a schedule is a list of them, in YAML too. */
export type Trigger =
  | { readonly every: number; readonly unit: "percent" | "steps" | "epochs" | "seconds" }
  | { readonly times: number; readonly per: "phase" }
  | { readonly at: readonly number[]; readonly unit: "percent" | "steps" }
  | { readonly at: "start" | "end" };

/**
 * One threshold that lies in (previous progress, current progress]. `at` is in the trigger's own unit (the k-th for so
 * many times a phase), 0 for start, null for an end.
 */
export interface Crossing {
  readonly trigger: Trigger;
  readonly at: number | null;
}
