import type { TrainerState } from "./trainer-state.ts";

/** A trainer's state. `save` identifies the save: a step is saved more than once. */
export const stateOf = (step: number, save: number, best: number | null): Omit<TrainerState, "files"> => ({
  schema_version: 1,
  phase: "train",
  step,
  max_steps: 9,
  epoch: 0,
  finished: false,
  stop_reason: null,
  loss: save,
  best: best === null ? null : { metric: "eval_loss", value: 1, step: best, rows: "these" },
  clean_step: null,
  stop_condition: null,
  skipped_updates: 0,
  skipped_in_a_row: 0,
  seed: 1,
  optimizer_steps: step,
  exact: {},
  session: {
    phase: "train",
    progress: { step, maxSteps: 9, epoch: 0, elapsedSeconds: 0, ended: false },
    runStepOffset: 0,
    callbacks: {},
    windowSeconds: 0,
  },
});
