import * as z from "zod";
import type {
  CallbackContext,
  TrainerCallback,
  Json,
  Snapshot,
  AnyEvaluation,
} from "@periodic-eval/contracts";
import {
  parseOptions,
  filledString,
  nameSchema,
  numberFromZero,
  positiveInteger,
  errorMessage,
  checkName,
  functionSchema,
} from "@periodic-eval/contracts/options";

/** The metric that a reaction watches. */
export interface MetricWatch {
  /** Id of the snapshots: `capability`. */
  readonly id: string;
  /** A metric of these snapshots: `accuracy`, `leakage_rate/doctor`. */
  readonly metric: string;
  /** Whether the largest or the smallest value is the best. */
  readonly mode: "max" | "min";
  /** Minimum improvement over the best value so far, in the metric's unit. Default 0: any improvement counts. */
  readonly minDelta?: number;
}

export const watchShape = {
  id: nameSchema,
  metric: filledString("the name of a metric").meta({ fix: "Take the name from a snapshot's metrics." }),
  mode: z.enum(["max", "min"]),
  minDelta: numberFromZero().meta({ fix: "Use the metric's unit." }).optional(),
} satisfies Record<keyof MetricWatch, z.ZodType>;

/** The best measurement so far. */
export interface Best {
  readonly step: number;
  readonly value: number;
  /** The step at which the value became known and a checkpoint was requested. Later than `step` if grading ran in the background. */
  readonly savedAt: number;
}

export interface Watched {
  readonly best: Best | null;
  /** Measurements since the best one. */
  readonly waited: number;
  /** The step of the last counted measurement. A snapshot that is reported again does not count again. */
  readonly step: number;
}

const initial: Watched = { best: null, waited: 0, step: -1 };

/** Returns a callback that follows a metric and calls `react` after each measurement with a value. */
export function watchMetric(
  name: string,
  { id, metric, mode, minDelta = 0 }: MetricWatch,
  react: (context: CallbackContext, watched: Watched) => void,
): TrainerCallback & { best(): Best | null } {
  let watched = initial;
  return {
    id: name,
    asks: [],
    best: () => watched.best,
    onTrainBegin({ previous }) {
      if (previous === null) watched = initial;
    },
    onSnapshot(context, snapshot) {
      const value = snapshot.metrics[metric]?.value ?? null;
      const isNew = snapshot.id === id && snapshot.phase === context.phase && snapshot.step > watched.step;
      if (!isNew || value === null || !isMeasured(snapshot)) return;
      const { step } = snapshot;
      const gain =
        watched.best === null ? Infinity : (mode === "max" ? 1 : -1) * (value - watched.best.value);
      const isBetter = gain > 0 && gain >= minDelta;
      watched = isBetter
        ? { best: { step, value, savedAt: context.progress.step }, waited: 0, step }
        : { ...watched, waited: watched.waited + 1, step };
      react(context, watched);
    },
    state: () => ({ ...watched, best: watched.best && { ...watched.best } }),
    restore(state: Json) {
      watched = state as unknown as Watched;
    },
  };
}

/** Whether a snapshot has metrics of a measurement. */
export const isMeasured = ({ status }: Snapshot): boolean => status === "complete" || status === "partial";

export interface EarlyStoppingOptions extends MetricWatch {
  /** Training ends after this many consecutive measurements without a better value; 1 or more. */
  readonly patience: number;
}

const earlyStoppingSchema = z.strictObject({
  ...watchShape,
  patience: positiveInteger.meta({ fix: "Count the measurements to wait." }),
} satisfies Record<keyof EarlyStoppingOptions, z.ZodType>);

/**
 * Ends training when a metric stops improving. Measurements without a value (skipped, failed, not graded yet) are ignored;
 * partial ones count.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function earlyStopping(options: EarlyStoppingOptions): TrainerCallback {
  parseOptions("earlyStopping options", earlyStoppingSchema, options);
  const { id, metric, patience } = options;
  return watchMetric(`early-stopping-${id}`, options, (context, { best, waited }) => {
    if (waited < patience) return;
    context.requestStop(
      `${metric} of "${id}" was best at step ${best!.step} (${best!.value}), and not better in ${waited} measurements since`,
    );
  });
}

export type MarkBestOptions = MetricWatch;

/**
 * Requests a checkpoint whenever a metric is better than in all earlier measurements. `best()` and the callback's state in
 * checkpoints say where that was.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function markBest(options: MarkBestOptions): TrainerCallback & { best(): Best | null } {
  parseOptions("markBest options", z.strictObject(watchShape), options);
  const { id, metric } = options;
  return watchMetric(`best-${id}`, options, (context, { best, waited }) => {
    // The weights of step 0 are those that training started with.
    if (waited > 0 || best === null || best.savedAt === 0) return;
    if (best.savedAt > best.step)
      context.warn(
        `"${id}" of step ${best.step} was graded at step ${best.savedAt}: the checkpoint has the later weights`,
      );
    context.requestSave(`${metric} of "${id}" is best at step ${best.step}: ${best.value}`);
  });
}

export interface EscalateOptions {
  /** Whether a snapshot requires further measurements: `worse("capability")`. */
  readonly when: (snapshot: Snapshot) => boolean;
  /** The evaluations to run then. Their snapshots are named `<id of the callback>-<name of the evaluation>`. */
  readonly run: readonly AnyEvaluation[];
  /** Default `escalate`. */
  readonly id?: string;
}

const nameOf = (evaluation: AnyEvaluation | null) => evaluation?.name;

const optionsSchema = z.strictObject({
  when: functionSchema("a function of a snapshot").meta({ fix: 'Write `worse("capability")`.' }),
  run: z
    .custom(
      (value) => Array.isArray(value) && value.length > 0 && new Set(value.map(nameOf)).size === value.length,
      "one or more evaluations with unique names",
    )
    .meta({ fix: "List each evaluation once." }),
  id: nameSchema.optional(),
} satisfies Record<keyof EscalateOptions, z.ZodType>);

/** Returns a test for snapshots of this id that are worse than their baseline, by the verdict of `metric` (default: the primary). */
export function worse(id: string, metric?: string): (snapshot: Snapshot) => boolean {
  checkName("worse id", id);
  return (snapshot) => {
    const name = metric ?? snapshot.primary_metric;
    return snapshot.id === id && name !== null && snapshot.paired.baseline?.[name]?.verdict === "worse";
  };
}

/**
 * Runs further evaluations when a snapshot requires them: in the same window, or at the step where its grading ends. They stay
 * within the budget that is left.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function escalate(options: EscalateOptions): TrainerCallback {
  const where = "escalate options";
  parseOptions(where, optionsSchema, options);
  const { when, run, id = "escalate" } = options;
  const names = run.map(({ name }) => `${id}-${name}`);
  for (const [at, name] of names.entries()) checkName(`${where}.run[${at}]`, name);
  return {
    id,
    asks: run,
    onSnapshot(context, snapshot) {
      if (names.includes(snapshot.id) || !isMeasured(snapshot)) return;
      if (!when(snapshot)) return;
      try {
        for (const [at, evaluation] of run.entries())
          context.measure({ id: names[at]!, evaluation, crossed: [] });
      } catch (error) {
        // After training there are no weights to measure: the snapshot was graded too late.
        context.warn(
          `no further measurements for "${snapshot.id}" of step ${snapshot.step}: ${errorMessage(error)}`,
        );
      }
    },
  };
}
