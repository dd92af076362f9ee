import type { Json } from "@periodic-eval/core";
import type { Interval } from "@periodic-eval/core/statistics";

type ByKey<T> = Readonly<Record<string, T>>;

/** What each document adds to a metric, numerator and denominator (of a mean 1), by what tells documents apart. */
export type DocumentParts = ReadonlyMap<string, readonly [value: number, weight: number]>;

/** Of one run, by the keys of its metrics. */
export type RunSamples = ReadonlyMap<string, DocumentParts>;

/** One run of `metrics.json`, as far as a page shows it. Keys are `task/metric,filter`. */
export interface ResultsRun {
  readonly name: string;
  readonly method: string | null;
  readonly model: string;
  readonly adapter: string | null;
  readonly config_hash: string;
  readonly config_path: string | null;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly metrics: ByKey<number | null>;
  readonly stderr: ByKey<number | null>;
  readonly n: ByKey<number>;
  readonly ci95: ByKey<Interval | null>;
  readonly higher_is_better: ByKey<boolean | null>;
  readonly run_hash: string | null;
  /** What the suite sets; its `tasks` tell which keys are tasks, and which are groups of one. */
  readonly suite: Json;
}
