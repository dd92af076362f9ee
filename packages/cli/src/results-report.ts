import { PeriodicEvalError } from "@periodic-eval/core";
import { quoteValue } from "@periodic-eval/core/internal";
import { writeFileAtomic } from "@periodic-eval/core/snapshots";
import { renderResults, summarizeResults, type ResultsSummary } from "@periodic-eval/dashboard";
import { dirname, join, resolve } from "node:path";
import { readResults } from "./read-results.ts";
import { resultsJson, resultsTables } from "./results-output.ts";
import type { Terminal } from "./terminal.ts";

interface ResultsReportOptions {
  readonly json: boolean;
  /** Default `index.html` beside the file. */
  readonly page?: string;
  /** The name of the run that the others are compared with; default the first. */
  readonly against?: string;
}

/** Writes the page of a `metrics.json` and tells its path, after a table per task; with `json` as one document. */
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

/** Of runs of one name the last. */
function referenceOf(runs: ResultsSummary["runs"], name: string | undefined, file: string): number {
  if (name === undefined) return 0;
  const at = runs.findLastIndex((run) => run.name === name);
  if (at !== -1) return at;
  throw new PeriodicEvalError({
    code: "config",
    where: "--against",
    got: quoteValue(name),
    expected: [...new Set(runs.map((run) => run.name))].join(", ") || `a run of ${file}, which has none yet`,
    fix: "Name one of these.",
  });
}
