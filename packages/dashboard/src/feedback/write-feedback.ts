import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { writeWhole } from "@periodic-eval/core/snapshots";
import { renderFeedback } from "./feedback-page.ts";
import { panelGroups, type CollapseLimits } from "./panels.ts";
import { plotFile } from "./plot-file.ts";
import { readFeedback, type FeedbackRun } from "./read-feedback.ts";

export interface WriteFeedbackOptions {
  /** Those that the run was watched by. */
  readonly limits: CollapseLimits;
  /** Where the page goes; default `<output>/index.html`. */
  readonly page?: string;
}

/** What was written, and what it was made from. */
export interface WrittenFeedback {
  readonly run: FeedbackRun;
  /** Absolute paths. */
  readonly page: string;
  readonly plots: readonly string[];
}

/**
 * Writes the page of training on feedback, and each of its drawings as `<output>/plots/*.svg`. All can be deleted at any time:
 * they are made from the files of the run.
 *
 * @throws PeriodicEvalError `store` for a file that is missing or damaged.
 */
export async function writeFeedback(
  output: string,
  { limits, page = join(output, "index.html") }: WriteFeedbackOptions,
): Promise<WrittenFeedback> {
  const run = await readFeedback(output);
  const groups = panelGroups(run, limits);
  const plots: string[] = [];
  await mkdir(join(output, "plots"), { recursive: true });
  for (const panel of groups.flatMap(({ panels }) => panels)) {
    const path = resolve(output, "plots", `${panel.id}.svg`);
    await writeWhole(path, plotFile(panel));
    plots.push(path);
  }
  await writeWhole(page, renderFeedback(run, groups));
  return { run, page: resolve(page), plots };
}
