import { join, resolve } from "node:path";
import { parseOptions } from "@periodic-eval/contracts/options";
import { writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import * as z from "zod";
import { renderFeedback } from "./feedback-page.ts";
import { panelGroups } from "./panels.ts";
import { plotFile } from "./plot-file.ts";
import { pngDrawing } from "./png-drawing.ts";
import { readFeedback, type FeedbackRun } from "./read-feedback.ts";

export interface WriteFeedbackOptions {
  /** Path of the page. Default: `<output>/index.html`. */
  readonly page?: string;
}

const schema = z.strictObject({
  page: z.string("a file path").optional(),
} satisfies Record<keyof WriteFeedbackOptions, z.ZodType>);

/** The data that was read and the files that were written. */
export interface WrittenFeedback {
  readonly run: FeedbackRun;
  /** Absolute path. */
  readonly page: string;
  /** Absolute paths. */
  readonly plots: readonly string[];
}

/**
 * Writes the page of training on feedback, and each chart as an SVG and a PNG file in `<output>/plots/`. All are derived from
 * the files of the run and can be deleted at any time.
 *
 * @throws PeriodicEvalError `config` for a wrong option, `store` for a missing or damaged file.
 */
export async function writeFeedback(
  output: string,
  options: WriteFeedbackOptions = {},
): Promise<WrittenFeedback> {
  const { page = join(output, "index.html") } = parseOptions("writeFeedback options", schema, options);
  const run = await readFeedback(output);
  const groups = panelGroups(run);
  const plots: string[] = [];
  await nodeFiles.makeFolder(join(output, "plots"));
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
