import { existsSync } from "node:fs";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import { writeFeedback, type WrittenFeedback } from "@periodic-eval/dashboard";
import type { HarnessConfig, SummaryFile } from "@periodic-eval/feedback";
import { feedbackTable } from "./output.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** What a training found, and its page where the configuration asks for one; interrupted, it has that of how far it came. */
export async function withDrawings(
  { output_dir: output, plots }: HarnessConfig,
  train: () => Promise<SummaryFile>,
  terminal: Terminal,
): Promise<{ readonly summary: SummaryFile; readonly drawn: WrittenFeedback | null }> {
  try {
    const summary = await train();
    return { summary, drawn: plots ? await writeFeedback(output) : null };
  } catch (error) {
    const isBegun = existsSync(join(output, "summary.json"));
    if (plots && isBegun && PeriodicEvalError.is(error, "aborted"))
      await writeFeedback(output).then(
        ({ page }) => terminal.out(page),
        (failure: unknown) => terminal.err(`No page was drawn: ${errorMessage(failure)}`),
      );
    throw error;
  }
}

/** Writes the page and the drawings of what `feedback` trained, after a table of the verdicts; with `json` as one document. */
export async function reportFeedback(
  output: string,
  { json, page: asked }: { readonly json: boolean; readonly page?: string },
  terminal: Terminal,
): Promise<void> {
  const {
    run: { summary },
    page,
    plots,
  } = await writeFeedback(output, asked === undefined ? {} : { page: asked });
  if (json) return terminal.out(JSON.stringify({ output_dir: output, ...summary, page, plots }, null, 2));
  terminal.out(`\n${feedbackTable(summary, terminal.colours)}\n`);
  terminal.out(page);
}
