import { readRun, writeFileAtomic } from "@periodic-eval/core/snapshots";
import { join, resolve } from "node:path";
import { renderPage } from "./run-page.ts";

/**
 * Writes the page of a run, finished or not, and returns its absolute path; by default
 * `<run>/periodic_eval/index.html`. The page can be deleted at any time: it is made from the snapshots.
 */
export async function writePage(
  runDir: string,
  file = join(runDir, "periodic_eval", "index.html"),
): Promise<string> {
  await writeFileAtomic(file, renderPage(await readRun(runDir)));
  return resolve(file);
}
