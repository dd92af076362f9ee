import type { PeriodicEvalError } from "./errors.ts";
import type { Awaitable, Json } from "./json.ts";
import type { Ability, CallOptions, ModelWith, Prompt } from "./model.ts";
import type { AnswerFields, MeasurementWarning, MetricValue, Row } from "./snapshot.ts";

export type { Row };

/**
 * A set of questions and their scoring, in four stages: `items` → `measure` (training is paused) → `grade` (training
 * continues; no model; repeatable after a crash) → `metrics` (pure functions). An evaluation knows nothing of schedules,
 * files or loggers, and sees only the abilities that `needs` and `wants` name, until `items` or `measure` returns.
 *
 * @template I Item: one question.
 * @template R Row that `measure` returns: one answer.
 * @template G Row after `grade`.
 * @template A Abilities that the evaluation needs.
 */
export interface Evaluation<I extends Row, R extends Row, G extends R, A extends Ability> {
  readonly name: string;
  /** Changes whenever the same answers would give different numbers. */
  readonly version: string;
  /** Abilities that the model must have. */
  readonly needs: readonly A[];
  /** Abilities that the evaluation uses if the model has them. `provenance` records which ones it used. */
  readonly wants?: readonly Ability[];
  /** Rows that `measure` returns per item if no deadline cuts it short. Default: 1. */
  readonly samplesPerItem?: number;
  /**
   * Fewest items of a measurement that the budget reduces; if these do not fit either, it is skipped. Default: a fifth of the
   * items.
   */
  readonly minItems?: number;
  /**
   * Whether `measure` takes only `context.samples`. The budget then reduces the samples of every item, down to one, and keeps all
   * items. Default false.
   */
  readonly canReduceSamples?: boolean;
  /**
   * Returns everything that changes a number and is not part of the items: options, prompts, data hashes. Called after
   * `items`, and again after `measure`. Two measurements are compared only if their provenance is equal, except for its keys `subsample` and
   * `example_prompt`, which choose or show items: pairs are built from the items that both measurements have.
   */
  provenance?(): Json;
  /** Returns the items in the order in which a smaller budget takes them. Throws on bad data: it runs before step 1. */
  items(model: ModelWith<A>): Awaitable<readonly I[]>;
  /**
   * Returns `samplesPerItem` rows with distinct ids per item (with `canReduceSamples`, those of `context.samples`). A row's id is
   * its item's, alone or followed by a separator and the number of the sample: `q1#0`. Rows must survive JSON unchanged, so they hold null instead of NaN. If the signal aborts with a deadline (`isDeadline`), it returns the rows it has. The session may pass the items in
   * several portions.
   */
  measure(model: ModelWith<A>, items: readonly I[], context: MeasureContext): Promise<readonly R[]>;
  /** Returns one prompt per item, for companion evaluations that use the same prompts, such as KL to the base model. */
  prompts?(model: ModelWith<A>, items: readonly I[]): Awaitable<readonly Prompt[]>;
  /**
   * Checks that the grader can be reached. Called once, before step 1.
   *
   * @throws PeriodicEvalError if it cannot be reached.
   */
  check?(options: CallOptions): Promise<void>;
  /**
   * Returns every measured row with its grades added, and may append rows of its own after them, such as anchors that it
   * graded again. The session may call it again with the rows it returned. Training continues meanwhile and may use
   * `Math.random`, so `grade` must not draw from it (`evaluationConformance` tests this).
   */
  grade?(rows: readonly R[], context: CallOptions): Promise<readonly G[]>;
  /**
   * Returns the reason why these rows must not be summarized, such as a judge that failed too often. The snapshot is then
   * `failed` and keeps the rows.
   */
  failure?(rows: readonly G[]): PeriodicEvalError | null;
  /**
   * True: if its questions cannot be had (`items` throws `data`), the session warns and records skipped measurements. Default: an
   * error before step 1.
   */
  readonly optional?: boolean;
  /**
   * The fields of a graded row that hold the question, the answer, the grades and more, for the page; the snapshot records it.
   * Null if rows are no answers. Without it, the page shows all fields of every row alike.
   */
  readonly answers?: AnswerFields | null;
  metrics(kit: MetricKit<NoInfer<G>>): Readonly<Record<string, Metric<G>>>;
  /**
   * Returns reasons to read the metrics with care, or not to judge them at all (`void`), such as answers that are mostly
   * incoherent. Called with the graded rows, and without rows before step 1, for what its questions alone show. The session adds
   * the reasons that only two measurements show (`MetricOptions.unknown`, `MetricOptions.control`).
   */
  warnings?(
    rows: readonly G[],
    metrics: Readonly<Record<string, MetricValue>>,
  ): readonly MeasurementWarning[];
  /** Returns keys for the top level of the snapshot, for existing scripts that read them. */
  plainKeys?(
    metrics: Readonly<Record<string, MetricValue>>,
    rows: readonly G[],
  ): Readonly<Record<string, Json>>;
  /**
   * Frees what the evaluation opened, such as a judge. Called after the last `grade`. May be called twice; a later measurement
   * opens again what it needs.
   */
  close?(): Promise<void>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- the session holds evaluations of every row type side by side
export type AnyEvaluation = Evaluation<any, any, any, any>;

export interface MeasureContext extends CallOptions {
  /** The samples of each item to take, counted from 0: `first` up to, but not including, `end`. Default: all `samplesPerItem`. */
  readonly samples?: SampleRange;
  /**
   * Names the random streams of this step and is the same for all evaluations measured at it. Derive further names from it,
   * per prompt or item and sample. Evaluations that generate from the same prompt under the same name share the completion.
   */
  readonly seed: string;
  /** Reports how many items are done, for the terminal. */
  readonly progress: (done: number) => void;
  /** Calls of the model that `measure` should keep in flight, as `measureInBatches` does. Default 1. */
  readonly concurrentCalls?: number;
}

export interface SampleRange {
  readonly first: number;
  readonly end: number;
}

/** A pure function of rows. Interval, grouping, pairing, significance test and curve all follow from it. */
export interface Metric<R> {
  readonly kind: "rate" | "mean" | "ratio";
  readonly options: MetricOptions<R>;
  /** Returns the contribution of a row; null leaves the row out (it was not scored or not graded). */
  observe(row: R): Observation | null;
  /** For a contrast: true for rows of the first side, false for rows of the second; null leaves the row out. */
  readonly isFirst?: (row: R) => boolean | null;
}

/** The contribution of one row to a metric, which is Σ value / Σ weight over rows. A rate adds 0 or 1 with weight 1. */
export interface Observation {
  readonly value: number;
  readonly weight: number;
}

/** The smallest and the largest possible value of a quantity; infinite where there is no bound. */
export type Range = readonly [min: number, max: number];

export interface MetricOptions<R> {
  /** Which direction is good. Absent if neither is: the verdict then says only `changed`. */
  readonly higherIsBetter?: boolean;
  /** Unit as printed: `nats`, `points`. Default: `share` for rates, otherwise empty. */
  readonly unit?: string;
  /**
   * The smallest and the largest possible value, such as `[0, 100]`; infinite where there is no bound. The metric's interval
   * stays within it, and the interval of a change within the largest possible difference. A rate has the range `[0, 1]`.
   */
  readonly range?: Range;
  /** Adds one metric per group, named `metric/group`. A row may belong to several groups, or to none (null). */
  readonly by?: (row: R) => string | readonly string[] | null;
  /** Names the cluster of rows that are not independent, such as samples of one question. Intervals are then over clusters. */
  readonly cluster?: (row: R) => string;
  /** Whether this metric carries the verdict. At most one may be marked; default: the first metric of the evaluation. */
  readonly primary?: boolean;
  /** Whether each measurement draws its rows at random (sampled completions). Pairs are then tested by permutation. */
  readonly sampled?: boolean;
  /**
   * For `sampled` metrics: the id of the item that the row is a sample of. Default: the row's id. Measurements are compared
   * item by item, over the items that both sampled, because samples of two items are not exchangeable, not even within one
   * cluster.
   */
  readonly item?: (row: R) => string;
  /**
   * Whether the row belongs to the metric and its value is not known: the answer is empty, incoherent or not graded. If the
   * conclusion differs when all such rows count as 0 and when all count as 1, the metric cannot be judged (`undecided`); if they
   * become more frequent, the snapshot has a warning. For rates.
   */
  readonly unknown?: (row: R) => boolean;
  /**
   * Names the rate of the source whose trait this metric looks for elsewhere. While the source does not show the trait (the 95 %
   * interval of its rate begins below 5 %), the primary metric and all others with this source cannot be judged, unless the primary
   * metric became worse.
   */
  readonly source?: string;
  /**
   * Marks a metric of the grader, such as its scores of fixed answers: if it moves from the baseline (p < 0.01, and by at least a
   * hundredth of its range), only the controls of the snapshot can be judged.
   */
  readonly control?: boolean;
  /**
   * Marks the metric of how coherent the answers are. If it falls from the baseline (p < 0.01, and by at least 15 % of its range),
   * that is a warning beside the verdicts of the other metrics.
   */
  readonly coherence?: boolean;
  /**
   * `exp`: the value is the exponential of the mean or ratio (a perplexity from nats per token). The interval's limits are the
   * exponentials of the limits in nats, the standard error uses the delta method, and all are null if exp overflows.
   * Measurements are compared before the transform and their difference is reported after it. Only for means and ratios that
   * are not sampled and not part of a contrast.
   */
  readonly transform?: "exp";
}

/** Constructors of metrics. */
export interface MetricKit<R> {
  /**
   * The share of rows for which `hit` is true. Wilson interval; with `cluster`, Clopper and Pearson's for the number of
   * independent rows that have the same variance if the rows of a cluster correlate by 0.5.
   */
  readonly rate: (hit: (row: R) => boolean | null, options?: Omit<MetricOptions<R>, "range">) => Metric<R>;
  /** The mean of `value`; t interval, cut to the metric's `range`. */
  readonly mean: (value: (row: R) => number | null, options?: MetricOptions<R>) => Metric<R>;
  /**
   * Σ numerator / Σ denominator, such as nats per token; delta-method interval, cut to the metric's `range`. With the range
   * [0, 1] it is a share of parts: if all rows agree, so that nothing varies, it gets Wilson's interval with the number of
   * rows as the number of observations.
   */
  readonly ratio: (
    parts: (row: R) => readonly [numerator: number, denominator: number] | null,
    options?: MetricOptions<R>,
  ) => Metric<R>;
  /**
   * The metric over the rows of the first side minus the same metric over the rows of the second, the two being independent.
   * The interval is built from both sides' intervals (MOVER); a change is tested on the difference of the sides' paired
   * changes (Welch).
   */
  readonly contrast: (of: Metric<R>, isFirst: (row: R) => boolean | null) => Metric<R>;
}

/** Groups entries by a key. Groups and their members keep the order of appearance. */
export function grouped<T>(entries: readonly T[], by: (entry: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const entry of entries) {
    const key = by(entry);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [entry]);
    else group.push(entry);
  }
  return groups;
}

/** Returns the rows of each group of a metric (its option `by`), without rows that are in no group. */
export function groupsOf<R extends Row>(
  { options: { by } }: Metric<R>,
  rows: readonly R[],
): Map<string, R[]> {
  if (by === undefined) return new Map();
  const named = rows.flatMap((row) => {
    const groups = by(row);
    return groups === null ? [] : [...new Set([groups].flat())].map((group) => ({ row, group }));
  });
  const groups = grouped(named, ({ group }) => group);
  return new Map([...groups].map(([group, members]) => [group, members.map(({ row }) => row)]));
}
