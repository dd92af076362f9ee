import type { PeriodicEvalError } from "../errors.ts";
import type { Awaitable, Json } from "./json.ts";
import type { Ability, CallOptions, Prompt, With } from "./model.ts";
import type { MetricValue } from "./snapshot.ts";
import type { Row } from "./row.ts";

/** The least and the greatest value that a quantity can take; infinite where it has no bound. */
export type Range = readonly [least: number, greatest: number];

export type { Row };

/** What one row adds to a metric: `value / weight` summed over rows. A rate adds 0 or 1 of weight 1. */
export interface Observation {
  readonly value: number;
  readonly weight: number;
}

export interface MetricOptions<R> {
  /** Which direction is good. Left out: no direction is, and a verdict says only "changed". */
  readonly higherIsBetter?: boolean;
  /** Unit as printed: "share" for rates by default, "nats", "points". */
  readonly unit?: string;
  /**
   * The least and the most that a value can be, infinite where there is no bound: `[0, 100]`. Intervals stay within it, and
   * those of changes within what two such values can differ by. A rate is of `[0, 1]`.
   */
  readonly range?: Range;
  /** One further metric per group, named `metric/group`; a row may be in several groups, one of null is in none. */
  readonly by?: (row: R) => string | readonly string[] | null;
  /** Rows that are not independent (samples of one question) share a cluster; intervals are then over clusters. */
  readonly cluster?: (row: R) => string;
  /** The metric that carries the verdict; exactly one per evaluation, the first by default. */
  readonly primary?: boolean;
  /** Rows are drawn at random anew at each look (sampled completions); pairs are then tested by permutation. */
  readonly sampled?: boolean;
  /**
   * Of `sampled` rows: the item that they are samples of, the row's id where left out. Looks are compared over the items
   * that both sampled, item by item: samples of two items, though of one cluster, are not exchangeable.
   */
  readonly item?: (row: R) => string;
  /**
   * `exp`: the value is exp of the mean or ratio (a perplexity, of nats a token). The limits of its interval are exp of
   * theirs, its standard error is by the delta method, and it is null where exp overflows. Looks are compared before, and their
   * difference told after. Of means and ratios that are not sampled, and not in a contrast.
   */
  readonly transform?: "exp";
}

/** A pure function of rows; interval, grouping, pairing and curve all follow from it. */
export interface Metric<R> {
  readonly kind: "rate" | "mean" | "ratio";
  readonly options: MetricOptions<R>;
  /** Null leaves the row out (not scored, not graded). */
  observe(row: R): Observation | null;
  /** Of a contrast: true for rows of the first side, false for those of the second; null leaves the row out. */
  readonly isFirst?: (row: R) => boolean | null;
}

export interface MetricKit<R> {
  /** The share of rows for which `hit` is true; Wilson interval. */
  readonly rate: (hit: (row: R) => boolean | null, options?: Omit<MetricOptions<R>, "range">) => Metric<R>;
  /** The mean of a value; t interval, cut to its `range`. */
  readonly mean: (value: (row: R) => number | null, options?: MetricOptions<R>) => Metric<R>;
  /**
   * Σ numerator / Σ denominator (a perplexity's nats per token, say); delta-method interval, cut to its `range`. A
   * ratio of the range [0, 1] is a share of parts: where all rows agree, so that nothing varies, Wilson's interval of as
   * many observations as there are rows.
   */
  readonly ratio: (
    parts: (row: R) => readonly [number, number] | null,
    options?: MetricOptions<R>,
  ) => Metric<R>;
  /**
   * A metric of some rows minus the same of others, the two independent: its interval is made of theirs (MOVER), and it
   * changed where the difference of their paired changes is not 0 (Welch).
   */
  readonly contrast: (of: Metric<R>, isFirst: (row: R) => boolean | null) => Metric<R>;
}

export interface MeasureContext extends CallOptions {
  /**
   * Names the random streams of this step, the same for all evaluations that are measured at it: derive further ones
   * from it, per prompt or item, and sample. What asks the same prompt under the same name shares the completion.
   */
  readonly seed: string;
  /** Tell how many items are done; the terminal shows it. */
  readonly progress: (done: number) => void;
}

/**
 * items → measure (training stands still) → grade (beside training, no model, again after a crash) → metrics (pure).
 * It knows nothing of schedules, files or loggers, and sees only the abilities it names in `needs`.
 */
export interface Evaluation<I extends Row, R extends Row, G extends R, A extends Ability> {
  readonly name: string;
  /** Changes when the same answers would give other numbers. */
  readonly version: string;
  readonly needs: readonly A[];
  /** Abilities that it uses where the model has them, and does without where not: its provenance then says so. */
  readonly wants?: readonly Ability[];
  /** Rows that `measure` gives for each item where it is not cut short; 1 where left out. */
  readonly samplesPerItem?: number;
  /**
   * Everything that changes a number and is not in the items: options, prompts, data hashes. Asked after `items`. Two
   * looks are compared where it is the same but for its keys `subsample` and `example_prompt`, which choose or show
   * items: pairs are made of the items that both have.
   */
  provenance?(): Json;
  /** The items in the order in which a smaller budget would take them. Throws on bad data: it runs before step 1. */
  items(model: With<A>): Awaitable<readonly I[]>;
  /**
   * `samplesPerItem` rows of distinct ids per item: what JSON holds unchanged, null in place of NaN. Where the signal is
   * a deadline (`isDeadline`), those that there are. May be asked for the items in portions.
   */
  measure(model: With<A>, items: readonly I[], context: MeasureContext): Promise<readonly R[]>;
  /** What the model is asked, an item each: for companions that look at the same prompts (KL to the base). */
  prompts?(model: With<A>, items: readonly I[]): readonly Prompt[];
  /**
   * Looks whether what grades can be reached; asked once before step 1.
   *
   * @throws PeriodicEvalError where it cannot.
   */
  check?(options: CallOptions): Promise<void>;
  /**
   * Returns each measured row with more in it, and behind them, if it will, rows of its own (anchors graded again); may
   * be asked again with what it returned before. Training goes on meanwhile, and with it whatever draws from
   * `Math.random`: draw nothing from there (`evaluationConformance` sees to it).
   */
  grade?(rows: readonly R[], context: CallOptions): Promise<readonly G[]>;
  /** Why these rows must not be summed up (a judge that failed too often); the snapshot is then `failed` and keeps them. */
  failure?(rows: readonly G[]): PeriodicEvalError | null;
  metrics(kit: MetricKit<NoInfer<G>>): Readonly<Record<string, Metric<G>>>;
  /** Keys at the snapshot's top level that existing scripts read. */
  plainKeys?(
    metrics: Readonly<Record<string, MetricValue>>,
    rows: readonly G[],
  ): Readonly<Record<string, Json>>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- the session holds evaluations of every row type side by side
export type AnyEvaluation = Evaluation<any, any, any, any>;
