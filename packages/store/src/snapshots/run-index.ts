import { appendLines, writeFileAtomic } from "../files/atomic-file.ts";
import type { FileSystem } from "../files/file-system.ts";
import { completeLines, readIfPresent } from "../files/read-file.ts";
import { fileName } from "./layout.ts";
import type { FoundSnapshot } from "./snapshot-file.ts";

/** Returns the line of a snapshot in `index.jsonl`: enough for a table of the run without reading its snapshots. */
function lineOf(root: string, { path, snapshot }: FoundSnapshot): string {
  const { phase, id, step, run_step, pct, status, on, evaluation, primary_metric, created_at } = snapshot;
  const value = primary_metric === null ? null : (snapshot.metrics[primary_metric]?.value ?? null);
  const file = fileName(root, path);
  const about = { phase, id, step, run_step, pct, status, on, evaluation, primary_metric, value, created_at };
  return JSON.stringify({ file, ...about });
}

/** Appends the line of a new snapshot. Returns false, and appends nothing, if there is no index or it names the file already. */
export async function addToIndex(
  { index, root }: { readonly index: string; readonly root: string },
  found: FoundSnapshot,
  fs: FileSystem,
): Promise<boolean> {
  const text = await readIfPresent(index, fs);
  if (text === null) return false;
  const line = lineOf(root, found);
  const start = line.slice(0, line.indexOf(",") + 1); // {"file":"…",
  if (completeLines(text).some((known) => known.startsWith(start))) return false;
  await appendLines(index, [line], fs);
  return true;
}

/** Writes the index from the snapshots, in run order, unless it has the same lines already. */
export async function rebuildIndex(
  { index, root }: { readonly index: string; readonly root: string },
  found: readonly FoundSnapshot[],
  fs: FileSystem,
): Promise<void> {
  const text = await readIfPresent(index, fs);
  const whole = found.map((one) => `${lineOf(root, one)}\n`).join("");
  if (text !== whole && (text !== null || found.length > 0)) await writeFileAtomic(index, whole, fs);
}
