import { writeFeedback, type WrittenFeedback } from "@periodic-eval/dashboard";
import { collapsePresets } from "@periodic-eval/feedback";
import { feedbackTable } from "./feedback-output.ts";
import type { Terminal } from "./terminal.ts";

/** Writes the page and the drawings of what `feedback` trained, with the thresholds that it watches by. */
export const drawFeedback = (output: string, page?: string): Promise<WrittenFeedback> =>
  writeFeedback(output, { limits: collapsePresets.claas, ...(page !== undefined && { page }) });

/** The same after a table of the verdicts; with `json` as one document. */
export async function reportFeedback(
  output: string,
  { json, page: asked }: { readonly json: boolean; readonly page?: string },
  terminal: Terminal,
): Promise<void> {
  const {
    run: { summary },
    page,
    plots,
  } = await drawFeedback(output, asked);
  if (json) return terminal.out(JSON.stringify({ output_dir: output, ...summary, page, plots }, null, 2));
  terminal.out(`\n${feedbackTable(summary, terminal.colours)}\n`);
  terminal.out(page);
}
