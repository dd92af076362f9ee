import { relative } from "node:path";
import { appendLines, writeFileAtomic } from "./atomic-file.ts";
import type { FileSystem } from "./file-system.ts";
import { readIfPresent, readLines } from "./read-file.ts";
import type { FoundSnapshot } from "./scan-snapshots.ts";

/** Returns a line of `index.jsonl`: enough for a table of the run without reading its snapshots. */
function indexLine(root: string, { path, snapshot }: FoundSnapshot): string {
  const { phase, id, step, run_step, pct, status, on, evaluation, primary_metric, created_at } = snapshot;
  const value = primary_metric === null ? null : (snapshot.metrics[primary_metric]?.value ?? null);
  const file = relative(root, path).replaceAll("\\", "/");
  return JSON.stringify({
    file,
    phase,
    id,
    step,
    run_step,
    pct,
    status,
    on,
    evaluation,
    primary_metric,
    value,
    created_at,
  });
}

/** Appends a snapshot's line. Returns false if the index must be rebuilt instead: it is absent or already names the file. */
export async function addToIndex(
  index: string,
  root: string,
  found: FoundSnapshot,
  fs: FileSystem,
): Promise<boolean> {
  if ((await readIfPresent(index, fs)) === null) return false;
  const line = indexLine(root, found);
  const start = line.slice(0, line.indexOf(",") + 1); // {"file":"…",
  if ((await readLines(index, fs)).some((known) => known.startsWith(start))) return false;
  await appendLines(index, [line], fs);
  return true;
}

/** Rewrites the index from the snapshots, unless it already has the same lines in any order. */
export async function rebuildIndex(
  index: string,
  root: string,
  found: readonly FoundSnapshot[],
  fs: FileSystem,
): Promise<void> {
  const lines = found.map((one) => indexLine(root, one));
  const text = await readIfPresent(index, fs);
  if (text === null && lines.length === 0) return;
  const isWhole = text === "" || text?.endsWith("\n");
  if (text === null || !isWhole || !sameLines(text, lines))
    await writeFileAtomic(index, joinLines(lines), fs);
}

function sameLines(text: string, lines: readonly string[]): boolean {
  return joinLines(text.split("\n").filter(Boolean).sort()) === joinLines([...lines].sort());
}

function joinLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}
