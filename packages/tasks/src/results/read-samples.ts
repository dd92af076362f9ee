import { join } from "node:path";
import { nodeFiles, readIfPresent, type FileReader } from "@periodic-eval/core/snapshots";
import type { MetricsRun } from "./metrics-file.ts";
import { dateId } from "../harness/results-file.ts";

/** What each document adds to a metric, numerator and denominator (of a mean 1), by the document's place and hash. */
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
 * What the documents of a run add to its metrics, of the samples that stand beside `metrics.json`
 * (`jobs/<name>/samples_*.jsonl`). Metrics are left out whose samples are not all there, are damaged, or do not give the
 * value that the run tells (of a perplexity they give its logarithm).
 *
 * @param results the folder of `metrics.json`
 */
export async function readSamples(
  results: string,
  { name, timestamp, metrics }: Pick<MetricsRun, "name" | "timestamp" | "metrics">,
  fs: FileReader = nodeFiles,
): Promise<RunSamples> {
  const found = new Map<string, DocumentParts>();
  // A file of another program may name a run as it likes: nothing is read outside the folder.
  if (/[/\\]/.test(name) || name === "..") return found;
  const fileOf = (file: string) => readIfPresent(join(results, "jobs", name, file), fs);
  const below = subtasksIn(await fileOf(`results_${dateId(timestamp)}.json`));
  const files = new Map<string, readonly Sample[] | null>();
  for (const [key, told] of Object.entries(metrics)) {
    const [, entry, metric, filter] = /^([^/]+)\/([^,]+),(.+)$/s.exec(key) ?? [];
    if (told === null || entry === undefined) continue;
    const own: Sample[] = [];
    let isWhole = true;
    for (const leaf of leavesOf(entry, below)) {
      if (!files.has(leaf))
        files.set(leaf, samplesIn(leaf, await fileOf(`samples_${leaf}_${dateId(timestamp)}.jsonl`)));
      const samples = files.get(leaf)!;
      if (samples === null) isWhole = false;
      else own.push(...samples.filter((sample) => sample.filter === filter));
    }
    const parts = isWhole ? partsOf(own, metric!) : null;
    if (parts !== null && isAbout(ratioOf(parts), told)) found.set(key, parts);
  }
  return found;
}

/** `group_subtasks` of the harness' file: names of the entries below each. */
function subtasksIn(text: string | null): Readonly<Record<string, readonly string[]>> {
  const all = text === null ? null : fieldsOf(text)?.["group_subtasks"];
  if (!isFields(all)) return {};
  return Object.fromEntries(
    Object.entries(all).map(([entry, names]) => [
      entry,
      Array.isArray(names) ? names.filter((one): one is string => typeof one === "string") : [],
    ]),
  );
}

/** The entries below one that have samples of their own; itself where there is none below it. */
function leavesOf(entry: string, below: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const leaves = new Set<string>();
  const seen = new Set<string>();
  const visit = (name: string) => {
    if (seen.has(name)) return;
    seen.add(name);
    const children = Object.hasOwn(below, name) ? below[name]! : [];
    if (children.length === 0) leaves.add(name);
    else children.forEach(visit);
  };
  visit(entry);
  return [...leaves].filter((leaf) => !/[/\\]/.test(leaf));
}

/** Null where there is no such file, or it is damaged. */
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

/** Several samples of one document count together. Null where a sample does not tell the metric. */
function partsOf(samples: readonly Sample[], metric: string): DocumentParts | null {
  const parts = new Map<string, readonly [number, number]>();
  for (const { document, fields } of samples) {
    const told = Object.hasOwn(fields, metric) ? fields[metric] : undefined;
    if (told === null) continue;
    const [value, weight] = (Array.isArray(told) ? told : [told, 1]) as readonly unknown[];
    if (typeof value !== "number" || typeof weight !== "number") return null;
    const [sum, count] = parts.get(document) ?? [0, 0];
    parts.set(document, [sum + value, count + weight]);
  }
  return parts;
}

function ratioOf(parts: DocumentParts): number {
  let [sum, count] = [0, 0];
  for (const [value, weight] of parts.values()) {
    sum += value;
    count += weight;
  }
  return sum / count;
}

const isAbout = (value: number, told: number): boolean =>
  Math.abs(value - told) <= 1e-9 * Math.max(1, Math.abs(told));

function fieldsOf(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
