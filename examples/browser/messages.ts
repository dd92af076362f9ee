/** A request of the page to the worker. */
export type Request =
  /** Starts the run, or continues it after a reload. */
  | { readonly kind: "start"; readonly settings: Settings }
  /** Ends training after the current step, with a checkpoint. */
  | { readonly kind: "pause" }
  /** Deletes the run. */
  | { readonly kind: "delete" };

export interface Settings {
  /** Steps of each phase. */
  readonly steps: number;
  /** Steps between two checkpoints. A reload repeats at most as many. */
  readonly saveSteps: number;
  /** Questions of each capability measurement. */
  readonly questions: number;
  /** Ids of the callbacks that measure; null for all. */
  readonly callbacks: readonly string[] | null;
  /** `webgpu`, `wasm` or `cpu`; null for the fastest. */
  readonly backend: string | null;
}

/** A report of the worker to the page. */
export type Report =
  /** The worker has opened the browser's storage, or keeps the run in memory because there is none. */
  | {
      readonly kind: "ready";
      readonly isInMemory: boolean;
      readonly run: { readonly settings: Settings; readonly isFinished: boolean } | null;
    }
  | { readonly kind: "engine"; readonly name: string }
  | {
      readonly kind: "step";
      readonly phase: string;
      readonly step: number;
      readonly maxSteps: number | null;
      readonly loss: number | null;
    }
  | { readonly kind: "measuring"; readonly id: string; readonly done: number; readonly total: number }
  /** The run's new state, as `renderRun` rendered it. */
  | { readonly kind: "run"; readonly markup: string }
  | { readonly kind: "ended"; readonly end: RunEnd }
  /** The run is deleted, and the browser's storage is closed. */
  | { readonly kind: "deleted" }
  | { readonly kind: "failed"; readonly message: string };

/** How training ended. */
export interface RunEnd {
  readonly isFinished: boolean;
  /** The step of the checkpoint from which the last phase continued; null if it began at its start. */
  readonly resumedFrom: number | null;
  /** Hash of weights and optimizer state at the end: equal hashes are equal bits. Null without a checkpoint. */
  readonly weights: string | null;
  readonly undisturbed: string;
  /** The disturbance that ended training, such as the loss of the GPU during a measurement; null if there was none. */
  readonly brokenReceipt: string | null;
  /** Median seconds of an optimizer step since the page was loaded; null if there was none. */
  readonly secondsPerStep: number | null;
}
