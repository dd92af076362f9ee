import { writeFeedback } from "@periodic-eval/dashboard";
import { feedbackTable } from "../../run/feedback-table.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** Writes the page and plots of a training on feedback, then prints its table and the page's path, or one JSON document. */
export async function reportFeedback(
  output: string,
  options: { readonly json: boolean; readonly page?: string },
  terminal: Terminal,
): Promise<void> {
  const { run, page, plots } = await writeFeedback(
    output,
    options.page === undefined ? {} : { page: options.page },
  );
  const { summary } = run;
  if (options.json)
    return terminal.out(JSON.stringify({ output_dir: output, ...summary, page, plots }, null, 2));
  terminal.out(`\n${feedbackTable(summary, terminal.colours)}\n`);
  terminal.out(page);
}
