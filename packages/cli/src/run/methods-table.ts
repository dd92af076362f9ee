import {
  changeGlyph,
  verdictKey,
  changeOver,
  formatScore,
  formatScoreChange,
  intervalNote,
  metricName,
  type MethodChange,
  type MethodResult,
  type MethodsSummary,
} from "@periodic-eval/dashboard";
import { plainTable, type Colours } from "../terminal/terminal.ts";

/** The flags that select methods, for errors. */
export const methodFlags = { methods: "--method", baseline: "--baseline", metrics: "--metric" } as const;

/** Returns a table with a row per method and a column per task: the value, the change against the baseline, and its interval. */
export function methodsTable({ methods, baseline, metrics }: MethodsSummary, colours: Colours): string {
  const titles = metrics.map((metric) => `${metric.task} ${metricName(metric)}`);
  const columns = [{ words: "method" }, "runs", ...titles];
  const rows = methods.map(({ label, runs }, at) => [
    at === baseline ? `${label} (baseline)` : label,
    String(runs.length),
    ...metrics.map(({ measured }) => cellOf(measured[at]!, measured[baseline]!, colours)),
  ]);
  const notes = [
    `Changes against ${methods[baseline]!.label} with 95 % intervals, without correction for several comparisons; ${verdictKey}.`,
    intervalNote(methods),
    ...(metrics.length === 0 ? ["No task has a metric that these runs share."] : []),
  ];
  return [plainTable(columns, rows, colours), ...notes.map((note) => colours.dim(note))].join("\n");
}

/** Returns the lines of a cell: value; change and interval; what the interval is over. */
function cellOf({ value, runs, change }: MethodResult, base: MethodResult, colours: Colours): string {
  if (change === null) return formatScore(value);
  const { delta, ci95, verdict } = change;
  const limits = ci95 === null ? "no interval" : `[${ci95.map(formatScoreChange).join(", ")}]`;
  const text = `${changeGlyph(verdict)} ${formatScoreChange(delta)} ${limits}`.trim();
  const over = changeOver(change, runs, base.runs);
  return [formatScore(value), inVerdictColour(text, verdict, colours), colours.dim(over)].join("\n");
}

export function inVerdictColour(text: string, verdict: MethodChange["verdict"], colours: Colours): string {
  const paint = {
    better: colours.green,
    worse: colours.red,
    changed: colours.yellow,
    "no evidence": colours.dim,
  };
  return verdict === null ? text : paint[verdict](text);
}
