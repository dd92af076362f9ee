import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";
import { writeFileAtomic } from "@periodic-eval/core/snapshots";
import { renderResults, summarizeResults, type ResultsSummary } from "@periodic-eval/dashboard";
import { dirname, join, resolve } from "node:path";
import { readResults } from "../../run/read-results.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { resultsJson, resultsTables } from "./results-output.ts";

interface ResultsReportOptions {
  readonly json: boolean;
  /** Default: `index.html` in the folder of the file. */
  readonly page?: string;
  /** Name of the run that the others are compared with. Default: the first. */
  readonly against?: string;
}

/** Writes the page of a `metrics.json`, then prints a table per task and the page's path, or with `json` one JSON document. */
export async function reportResults(
  file: string,
  { json, page = join(dirname(file), "index.html"), against }: ResultsReportOptions,
  terminal: Terminal,
): Promise<void> {
  const { runs, samples } = await readResults(file);
  const summary = summarizeResults(runs, referenceOf(runs, against, file), samples);
  await writeFileAtomic(page, renderResults(summary, file));
  if (json) return terminal.out(resultsJson(summary, file, resolve(page)));
  terminal.out(`\n${resultsTables(summary, terminal.colours)}\n`);
  terminal.out(resolve(page));
}

/** Returns the index of the run of this name; the last of several. */
function referenceOf(runs: ResultsSummary["runs"], name: string | undefined, file: string): number {
  if (name === undefined) return 0;
  const at = runs.findLastIndex((run) => run.name === name);
  if (at !== -1) return at;
  throw new PeriodicEvalError({
    code: "config",
    where: "--against",
    got: quoteValue(name),
    expected:
      [...new Set(runs.map((run) => run.name))].join(", ") || `a run of ${file}, which is still empty`,
    fix: "Name one of these.",
  });
}
