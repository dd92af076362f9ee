import type { Metric, Row, Json } from "@periodic-eval/core";
import { compareMeasurements, type Interval } from "@periodic-eval/core/statistics";

/** The difference between a run and the reference run. */
export interface Change {
  /** Number of documents that both runs answered; null if the runs were compared as independent samples. */
  readonly pairs: number | null;
  readonly delta: number;
  readonly ci95: Interval | null;
  /** Null if there is no interval. */
  readonly verdict: "better" | "worse" | "changed" | "no evidence" | null;
}

interface Document extends Row {
  readonly value: number;
  readonly weight: number;
}

/**
 * Returns the change of a metric between two runs over the same documents; null if the documents differ. Correct/incorrect
 * answers: Newcombe's paired interval and McNemar's exact test. Other metrics: a t interval over documents.
 */
export function pairedChange(
  now: DocumentParts,
  before: DocumentParts,
  higherIsBetter: boolean | null,
): Change | null {
  if (now.size !== before.size || ![...now.keys()].every((document) => before.has(document))) return null;
  const metric: Metric<Document> = {
    kind: kindOf([...now.values(), ...before.values()]),
    options: higherIsBetter === null ? {} : { higherIsBetter },
    observe: ({ value, weight }) => ({ value, weight }),
  };
  const earlier = { phase: "", step: 0, rows: rowsOf(before) };
  const options = { seed: "", primary: "change", alpha: 0.05 };
  const {
    delta,
    ci95,
    verdict,
    n_pairs: pairs,
  } = compareMeasurements({ change: metric }, rowsOf(now), earlier, options)["change"]!;
  return delta === null ? null : { delta, ci95, verdict, pairs };
}

/**
 * Returns each document's mean over runs of its numerator and of its denominator; undefined if a run kept no documents, or
 * other ones.
 */
export function meanOverDocuments(runs: readonly (DocumentParts | undefined)[]): DocumentParts | undefined {
  const [first] = runs;
  if (first === undefined) return undefined;
  const means = new Map<string, readonly [value: number, weight: number]>();
  for (const document of first.keys()) {
    const sum = { value: 0, weight: 0 };
    for (const run of runs) {
      const parts = run?.get(document);
      if (parts === undefined || run?.size !== first.size) return undefined;
      sum.value += parts[0];
      sum.weight += parts[1];
    }
    means.set(document, [sum.value / runs.length, sum.weight / runs.length]);
  }
  return means;
}

function kindOf(parts: readonly (readonly [value: number, weight: number])[]): Metric<Document>["kind"] {
  if (parts.some(([, weight]) => weight !== 1)) return "ratio";
  return parts.every(([value]) => value === 0 || value === 1) ? "rate" : "mean";
}

const rowsOf = (parts: DocumentParts): readonly Document[] =>
  [...parts].map(([id, [value, weight]]) => ({ id, value, weight }));

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
