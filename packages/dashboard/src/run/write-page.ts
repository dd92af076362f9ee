import { readRun, writeFileAtomic } from "@periodic-eval/store";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readAnswers } from "../answers/read-answers.ts";
import { readAnswerScores } from "./answer-scores.ts";
import { renderPage } from "./run-page.ts";

/**
 * Writes the page of a run, finished or not, and returns its absolute path. The page is derived from the snapshots and can be
 * deleted at any time.
 *
 * @param file Default: `<runDir>/periodic_eval/index.html`.
 */
export async function writePage(runDir: string, file?: string): Promise<string> {
  const run = await readRun(runDir);
  const folder = join(runDir, "periodic_eval");
  // A run whose snapshots were deleted has a page that says so.
  if (file === undefined && run.problems.length > 0) await mkdir(folder, { recursive: true });
  const path = file ?? join(folder, "index.html");
  const [answers, scatters] = [await readAnswers(run), await readAnswerScores(run)];
  await writeFileAtomic(path, renderPage(run, answers, scatters));
  return resolve(path);
}
