import { checkKeys } from "../internal/check-keys.ts";
import { quoteValue } from "../internal/quote-value.ts";
import { checkWord } from "../internal/check-word.ts";
import { PeriodicEvalError } from "../errors.ts";
import type { AnyEvaluation } from "../contracts/evaluation.ts";
import { isCount } from "../internal/is-count.ts";
import type { Json } from "../contracts/json.ts";
import { errorMessage } from "../internal/error-message.ts";
import { checkName } from "../internal/names.ts";
import type { Snapshot } from "../contracts/snapshot.ts";
import type { CallbackContext, TrainerCallback } from "../contracts/callback.ts";

interface Watch {
  /** Id of the snapshots that are watched: `capability`. */
  readonly id: string;
  /** A metric of theirs: `accuracy`, `leakage_rate/doctor`. */
  readonly metric: string;
  /** Whether the largest value is the best, or the smallest. */
  readonly mode: "max" | "min";
  /** Least difference to the best so far that counts, in the metric's unit; default 0: any. */
  readonly minDelta?: number;
}

export interface EarlyStoppingOptions extends Watch {
  /** So many looks in a row without a better value end training; 1 or more. */
  readonly patience: number;
}

export type MarkBestOptions = Watch;

/** The best look so far. */
export interface Best {
  readonly step: number;
  readonly value: number;
  /** Where training stood when its value was known, and a checkpoint was asked for: later where it is graded beside training. */
  readonly savedAt: number;
}

interface Watched {
  readonly best: Best | null;
  /** Looks since the best one. */
  readonly waited: number;
  /** The last look that was counted: one that is told of again is not counted again. */
  readonly step: number;
}

const nothing: Watched = { best: null, waited: 0, step: -1 };

/**
 * Ends training where a metric does not get better any more. Looks without a value of it (skipped, failed, not graded
 * yet) count neither way; partial ones count.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function earlyStopping(options: EarlyStoppingOptions): TrainerCallback {
  const { id, metric, patience } = options;
  checkWatch("earlyStopping", options, ["patience"]);
  if (!isCount(patience, 1))
    throw wrong(
      "earlyStopping patience",
      patience,
      "a whole number of 1 or more",
      "Count the looks to wait.",
    );
  return watching(`early-stopping-${id}`, options, (context, { best, waited }) => {
    if (waited < patience) return;
    context.requestStop(
      `${metric} of "${id}" was best at step ${best!.step} (${best!.value}), and no better in ${waited} looks since`,
    );
  });
}

/**
 * Asks for a checkpoint wherever a metric is better than at all looks before; `best()` and its state in checkpoints say
 * where that was.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function markBest(options: MarkBestOptions): TrainerCallback & { best(): Best | null } {
  const { id, metric } = options;
  checkWatch("markBest", options, []);
  return watching(`best-${id}`, options, (context, { best, waited }) => {
    // The weights of step 0 are those that training began with.
    if (waited > 0 || best === null || best.savedAt === 0) return;
    if (best.savedAt > best.step)
      context.warn(
        `"${id}" of step ${best.step} was graded at step ${best.savedAt}: the checkpoint is of the later weights`,
      );
    context.requestSave(`${metric} of "${id}" is best at step ${best.step}: ${best.value}`);
  });
}

function watching(
  name: string,
  { id, metric, mode, minDelta = 0 }: Watch,
  react: (context: CallbackContext, watched: Watched) => void,
): TrainerCallback & { best(): Best | null } {
  let watched = nothing;
  return {
    id: name,
    best: () => watched.best,
    onTrainBegin({ previous }) {
      if (previous === null) watched = nothing;
    },
    onSnapshot(context, snapshot) {
      const value = snapshot.metrics[metric]?.value ?? null;
      const isOurs = snapshot.id === id && snapshot.phase === context.phase && snapshot.step > watched.step;
      if (!isOurs || value === null || !isMeasured(snapshot)) return;
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

const isMeasured = ({ status }: Snapshot) => status === "complete" || status === "partial";

export interface EscalateOptions {
  /** Whether a snapshot asks for more: `worse("capability")`. */
  readonly when: (snapshot: Snapshot) => boolean;
  /** What is measured then. Its snapshots are named by the callback's id and the evaluation's name: `escalate-alignment`. */
  readonly run: readonly AnyEvaluation[];
  /** Default `escalate`. */
  readonly id?: string;
}

/** Whether a snapshot of this id is worse than its baseline, by the verdict of its primary metric or the one named. */
export function worse(id: string, metric?: string): (snapshot: Snapshot) => boolean {
  checkName("worse id", id);
  return (snapshot) => {
    const name = metric ?? snapshot.primary_metric;
    return snapshot.id === id && name !== null && snapshot.paired.baseline?.[name]?.verdict === "worse";
  };
}

/**
 * Measures more where a snapshot asks for it: in the same window, or at the step where its grading is done. Under a
 * budget, what that leaves.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function escalate(options: EscalateOptions): TrainerCallback {
  checkKeys("escalate", options, ["when", "run", "id"]);
  const { when, run, id = "escalate" } = options;
  checkName("escalate id", id);
  if (typeof when !== "function")
    throw wrong("escalate when", when, "a function of a snapshot", 'Write `worse("capability")`.');
  if (!Array.isArray(run) || run.length === 0)
    throw wrong("escalate run", run, "a list of evaluations", "Name what is measured then.");
  const names = run.map(({ name }) => `${id}-${name}`);
  for (const [at, name] of names.entries()) {
    checkName(`escalate run[${at}]`, name);
    if (names.indexOf(name) !== at)
      throw wrong(
        `escalate run[${at}]`,
        run[at]!.name,
        "evaluations of distinct names",
        "Remove the repetition.",
      );
  }
  return {
    id,
    asks: run,
    onSnapshot(context, snapshot) {
      if (names.includes(snapshot.id) || !isMeasured(snapshot) || !when(snapshot)) return;
      try {
        for (const [at, evaluation] of run.entries())
          context.measure({ id: names[at]!, evaluation, crossed: [] });
      } catch (error) {
        // A verdict that comes when training is over, after grading, finds no weights to measure.
        context.warn(
          `nothing more is measured for "${snapshot.id}" of step ${snapshot.step}: ${errorMessage(error)}`,
        );
      }
    },
  };
}

function checkWatch(where: string, options: Watch, more: readonly string[]): void {
  checkKeys(where, options, ["id", "metric", "mode", "minDelta", ...more]);
  const { id, metric, mode, minDelta = 0 } = options;
  checkName(`${where} id`, id);
  if (typeof metric !== "string" || metric === "")
    throw wrong(`${where} metric`, metric, "the name of a metric", "Take it from a snapshot's metrics.");
  checkWord(`${where} mode`, mode, ["max", "min"]);
  if (!(Number.isFinite(minDelta) && minDelta >= 0))
    throw wrong(`${where} minDelta`, minDelta, "0 or more", "Give it in the metric's unit.");
}

function wrong(where: string, got: unknown, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "config", where, got: quoteValue(got), expected, fix });
}
