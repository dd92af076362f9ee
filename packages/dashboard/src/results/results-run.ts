import type { Json } from "@periodic-eval/core";
import type { Interval } from "@periodic-eval/core/statistics";

type ByKey<T> = Readonly<Record<string, T>>;

/** Maps a document's identity to its numerator and denominator in a metric. The denominator is 1 for means. */
export type DocumentParts = ReadonlyMap<string, readonly [value: number, weight: number]>;

/** The documents of one run, by metric key. */
export type RunSamples = ReadonlyMap<string, DocumentParts>;

/** One run of `metrics.json`: the fields that a page shows. Keys are `task/metric,filter`. */
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
  /** The suite's settings. The keys of its `tasks` are the names of tasks; every other name in a metric key is a group of a task. */
  readonly suite: Json;
}
