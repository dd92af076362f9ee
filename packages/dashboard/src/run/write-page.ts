import { readRun, writeFileAtomic } from "@periodic-eval/core/snapshots";
import { join, resolve } from "node:path";
import { renderPage } from "./run-page.ts";

/**
 * Writes the page of a run, finished or not, and returns its absolute path. The page is derived from the snapshots and can be
 * deleted at any time.
 *
 * @param file Default: `<runDir>/periodic_eval/index.html`.
 */
export async function writePage(
  runDir: string,
  file = join(runDir, "periodic_eval", "index.html"),
): Promise<string> {
  await writeFileAtomic(file, renderPage(await readRun(runDir)));
  return resolve(file);
}
