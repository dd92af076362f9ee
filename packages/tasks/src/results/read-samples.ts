import * as z from "zod";
import { join } from "node:path";
import { isRecord } from "@periodic-eval/contracts/options";
import { nodeFiles, readIfPresent, type FileReader } from "@periodic-eval/store";
import type { MetricsRun } from "./metrics-file.ts";
import { dateId } from "../harness/results-file.ts";

/** Each document's numerator and denominator (1 for a mean) of a metric, by the document's index and hash. */
export type DocumentParts = ReadonlyMap<string, readonly [value: number, weight: number]>;

/** By keys of `metrics.json`. */
export type RunSamples = ReadonlyMap<string, DocumentParts>;

interface Sample {
  readonly document: string;
  readonly filter: unknown;
  readonly fields: Fields;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads what each document contributes to a run's metrics from its samples files (`jobs/<name>/samples_*.jsonl`). Leaves out
 * metrics whose samples are incomplete, damaged, or do not reproduce the run's value (those of a perplexity give its
 * logarithm).
 *
 * @param results The folder of `metrics.json`.
 */
export async function readSamples(
  results: string,
  { name, timestamp, metrics }: Pick<MetricsRun, "name" | "timestamp" | "metrics">,
  fs: FileReader = nodeFiles,
): Promise<RunSamples> {
  const byMetric = new Map<string, DocumentParts>();
  const fileOf = (file: string) => readIfPresent(join(results, "jobs", name, file), fs);
  const written = fieldsOf((await fileOf(`results_${dateId(timestamp)}.json`)) ?? "");
  const below = resultsSchema.safeParse(written).data?.group_subtasks ?? {};
  const files = new Map<string, readonly Sample[] | null>();
  for (const [key, recorded] of Object.entries(metrics)) {
    const [, entry, metric, filter] = /^([^/]+)\/([^,]+),(.+)$/s.exec(key) ?? [];
    if (recorded === null || entry === undefined) continue;
    let chosen: readonly Sample[] | null = [];
    for (const leaf of leavesOf(entry, below)) {
      if (!files.has(leaf))
        files.set(leaf, samplesIn(leaf, await fileOf(`samples_${leaf}_${dateId(timestamp)}.jsonl`)));
      const samples = files.get(leaf)!;
      chosen = samples && chosen && [...chosen, ...samples.filter((sample) => sample.filter === filter)];
    }
    const parts = chosen && partsOf(chosen, metric!);
    if (parts !== null && isAbout(ratioOf(parts), recorded)) byMetric.set(key, parts);
  }
  return byMetric;
}

/** The names of the entries below each entry, in the results file. */
const resultsSchema = z.object({ group_subtasks: z.record(z.string(), z.array(z.string())) });

/** Returns the entries below one that have samples files; the entry itself if it has none below. */
function leavesOf(entry: string, below: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const { [entry]: children = [], ...rest } = below;
  return children.length === 0 ? [entry] : children.flatMap((child) => leavesOf(child, rest));
}

/** Parses a samples file; returns null if it is missing or damaged. */
function samplesIn(leaf: string, text: string | null): readonly Sample[] | null {
  if (text === null) return null;
  const samples = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Sample | null => {
      const fields = fieldsOf(line);
      if (fields === null) return null;
      const { doc_id: id, doc_hash: hash, filter } = fields;
      return { document: JSON.stringify([leaf, id ?? null, hash ?? null]), filter, fields };
    });
  return samples.every((sample) => sample !== null) ? samples : null;
}

/** Adds up the samples of each document; returns null if a sample lacks the metric. */
function partsOf(samples: readonly Sample[], metric: string): DocumentParts | null {
  const parts = new Map<string, readonly [number, number]>();
  for (const { document, fields } of samples) {
    const sample = Object.hasOwn(fields, metric) ? fields[metric] : undefined;
    if (sample === null) continue;
    const [value, weight] = (Array.isArray(sample) ? sample : [sample, 1]) as readonly unknown[];
    if (typeof value !== "number" || typeof weight !== "number") return null;
    const [sum, count] = parts.get(document) ?? [0, 0];
    parts.set(document, [sum + value, count + weight]);
  }
  return parts;
}

function ratioOf(parts: DocumentParts): number {
  const total = (part: 0 | 1) => [...parts.values()].reduce((sum, pair) => sum + pair[part], 0);
  return total(0) / total(1);
}

const isAbout = (value: number, recorded: number): boolean =>
  Math.abs(value - recorded) <= 1e-9 * Math.max(1, Math.abs(recorded));

function fieldsOf(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
