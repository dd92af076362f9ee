import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { writeFileAtomic } from "@periodic-eval/core/snapshots";
import { renderFeedback } from "./feedback-page.ts";
import { panelGroups } from "./panels.ts";
import { plotFile } from "./plot-file.ts";
import { pngDrawing } from "./png-drawing.ts";
import { readFeedback, type FeedbackRun } from "./read-feedback.ts";

export interface WriteFeedbackOptions {
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
 * Writes the page of training on feedback, and each of its drawings as an SVG and a PNG file in `<output>/plots/`. All can be
 * deleted at any time: they are made from the files of the run, thresholds included.
 *
 * @throws PeriodicEvalError `store` for a file that is missing or damaged.
 */
export async function writeFeedback(
  output: string,
  { page = join(output, "index.html") }: WriteFeedbackOptions = {},
): Promise<WrittenFeedback> {
  const run = await readFeedback(output);
  const groups = panelGroups(run);
  const plots: string[] = [];
  await mkdir(join(output, "plots"), { recursive: true });
  const draw = await pngDrawing();
  for (const panel of groups.flatMap(({ panels }) => panels)) {
    const path = resolve(output, "plots", panel.id);
    const svg = plotFile(panel);
    await writeFileAtomic(`${path}.svg`, svg);
    await writeFileAtomic(`${path}.png`, (file) => file.write(draw(svg)));
    plots.push(`${path}.svg`, `${path}.png`);
  }
  await writeFileAtomic(page, renderFeedback(run, groups));
  return { run, page: resolve(page), plots };
}
