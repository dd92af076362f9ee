import { grouped, type RunRecord } from "@periodic-eval/contracts";
import type { Snapshot } from "@periodic-eval/core";
import { repeatedReason, undisturbedText, verdictText } from "@periodic-eval/core/console";
import { formatDelta, formatValue, missingValueText } from "@periodic-eval/core/statistics";
import {
  formatChange,
  formatInterval,
  edgeHeadings,
  edgeValues,
  formatCost,
  formatPercent,
  headline,
  humanizeName,
  isGroupMetric,
  notFinished,
  phaseData,
  phaseText,
  summarizePhases,
  secondJudgeText,
  sortVoidFirst,
  stopText,
  writePage,
  problemNames,
  type MetricSummary,
  type PhaseSummary,
  formatP,
  writeFeedback,
  type FeedbackSummary,
} from "@periodic-eval/dashboard";
import { readRun, undisturbed } from "@periodic-eval/store";
import { jsonText, plainTable, type Colours, type Terminal } from "../terminal/terminal.ts";

/**
 * Writes a run's page, then prints a table per phase and the page's path, or with `json` one JSON document. A run that has measured
 * nothing has no page; its JSON has the page `null`.
 */
export async function reportRun(
  runDir: string,
  { json, page }: { readonly json: boolean; readonly page?: string },
  terminal: Terminal,
): Promise<void> {
  const run = await readRun(runDir);
  const isMeasured = run.phases.length > 0 || run.problems.length > 0;
  const path = isMeasured ? await writePage(runDir, page) : null;
  const incomplete = run.phases
    .flatMap(({ snapshots }) => snapshots)
    .filter(({ status }) => status !== "complete")
    .map(({ phase, id, step, status, reason }) => ({ phase, id, step, status, reason }));
  if (!json) {
    if (path === null) return terminal.out(`${runDir}: nothing was measured, so there is no page`);
    const state = notFinished(run);
    if (state !== null) terminal.out(terminal.colours.yellow(state));
    const parts = [headlines(run, terminal.colours), phaseTables(run, terminal.colours)];
    terminal.out(`\n${parts.filter((part) => part !== "").join("\n\n")}\n`);
    for (const line of incompleteLines(incomplete)) terminal.out(line);
    for (const { file, kind, message } of run.problems)
      terminal.out(`${problemNames[kind]}: ${file}: ${message}`);
    terminal.out(pageLine(path));
    return;
  }
  const phases = phaseData(run);
  const { problems } = run;
  terminal.out(jsonText({ run_dir: runDir, page: path, phases, incomplete, problems }));
}

type Incomplete = Pick<Snapshot, "phase" | "id" | "step" | "status" | "reason">;

/**
 * Returns a line for all steps at which a callback had one outcome. A callback that is disabled is skipped at every step for the same
 * reason; a budget repeats its reason with other numbers.
 */
function incompleteLines(incomplete: readonly Incomplete[]): readonly string[] {
  const keyOf = (result: Incomplete) =>
    `${result.phase}: ${outcomeText({ ...result, reason: repeatedReason(result) })}`;
  return [...grouped(incomplete, keyOf).values()].map((same) => {
    const [first, ...others] = same;
    const steps = `step${others.length === 0 ? "" : "s"} ${same.map(({ step }) => step).join(", ")}`;
    const isExact = others.every(({ reason }) => reason === first!.reason);
    const numbers = isExact ? "" : ` (the numbers are those of step ${first!.step})`;
    return `${first!.phase} ${steps}: ${outcomeText(first!)}${numbers}`;
  });
}

/** Returns `capability skipped: REASON`. */
const outcomeText = ({ id, status, reason }: Pick<Snapshot, "id" | "status" | "reason">): string =>
  `${id} ${status}${reason === null ? "" : `: ${reason}`}`;

/** Prints where a page is; with `--json` only the path. */
export const pageLine = (path: string): string => `Open this page in a browser: ${path}`;

/** Returns a line for each stop, and for each primary metric of each phase with its warnings. What cannot be judged comes first. */
function headlines(run: RunRecord, colours: Colours): string {
  const phases = summarizePhases(run);
  const primaries = phases.flatMap(({ phase, metrics }) =>
    metrics.filter(({ isPrimary }) => isPrimary).map((metric) => ({ metric, phase })),
  );
  const stops = phases.flatMap(({ phase, stop }) => (stop === null ? [] : stopText(phase.name, stop)));
  const lines = sortVoidFirst(primaries).flatMap(({ metric, phase }) => {
    const line = headline(metric, run.phases.length > 1 ? phase.name : null);
    return [
      metric.voidReason === null ? line : colours.yellow(line),
      ...metric.warnings.map((message) => colours.yellow(`  warning: ${message}`)),
      ...[secondJudgeText(phase, metric.id) ?? []].flat(),
    ];
  });
  return [...stops.map(colours.yellow), ...lines].join("\n");
}

const columnsOf = (metrics: readonly MetricSummary[]) => [
  { words: "metric" },
  ...edgeHeadings(metrics),
  "change",
  "95 % interval",
  { words: "verdict" },
];

/**
 * Whether a table shows a metric. Groups are only on the page, and a metric that is 0 at both ends is left out, but not the source's
 * rate: it says what leakage is about.
 */
const isShown = ({ metric, isPrimary, start, end }: MetricSummary): boolean =>
  isPrimary ||
  metric === "source_rate" ||
  (!isGroupMetric(metric) && !(start.value === 0 && end.value === 0));

/**
 * Returns a table per phase with overhead above it: start → end, change with its interval, and the verdict; below them whether
 * training was undisturbed. A metric with groups has one row, for the whole.
 */
function phaseTables(run: RunRecord, colours: Colours): string {
  const shown = summarizePhases(run).map(({ phase, metrics }) => ({
    phase,
    metrics: metrics.filter(isShown),
  }));
  const tables = shown.map(({ phase, metrics }) => {
    const rows = metrics.map((metric) => metricRow(metric, colours));
    const table = rows.length === 0 ? "" : `\n${plainTable(columnsOf(metrics), rows, colours)}`;
    return `${phaseTitle(phase, colours)}${table}`;
  });
  const isOverPairs = shown.some(({ metrics }) => metrics.some((metric) => metric.isOverPairs));
  const headline = undisturbedText(undisturbed(run.phases.flatMap(({ snapshots }) => snapshots)), colours);
  return [
    ...tables,
    ...(isOverPairs ? [colours.dim(pairsNote)] : []),
    ...(headline === null ? [] : [headline]),
  ].join("\n\n");
}

const pairsNote =
  "Over paired items: the change is the mean over items that both measurements observed, so it can differ from end minus start.";

function phaseTitle(phase: PhaseSummary["phase"], colours: Colours): string {
  const { name, maxSteps, state } = phase;
  const length = maxSteps === null && state === "finished" ? "" : `${phaseText(phase)}, `;
  return `${colours.bold(name)}  ${length}measuring ${formatCost(phase)}`;
}

function metricRow(summary: MetricSummary, colours: Colours): readonly string[] {
  const { id, metric, unit, isSingle, change, against } = summary;
  const [first, last] = edgeValues(summary);
  const verdict =
    summary.voidReason === null
      ? verdictText(change?.verdict ?? null, colours)
      : colours.yellow("cannot be judged");
  const level =
    change?.alpha == null || change.verdict === null
      ? ""
      : colours.dim(` at ${formatPercent(100 * change.alpha)}`);
  const hint = change?.verdict && change.exploratory ? colours.dim(" (only a hint)") : "";
  return [
    `${humanizeName(id)}: ${humanizeName(metric)}`,
    first,
    isSingle ? last : `→ ${last}`,
    formatChange(summary),
    formatInterval(change?.ci95, unit),
    (verdict ?? "–") + level + hint + (against === null ? "" : colours.dim(` against ${against}`)),
  ];
}

const columns = [
  { words: "preference" },
  "steps",
  "margin",
  "by token",
  "p",
  "compliance",
  "",
  "ability",
  { words: "alerts" },
  { words: "verdict" },
];

/**
 * Returns a table of the results of training on feedback, one row per preference, and a line for each value that is not known:
 * preferences, value and reason.
 */
export function feedbackTable(
  { preferences }: Pick<FeedbackSummary, "preferences">,
  colours: Colours,
): string {
  const rows = Object.entries(preferences).map(([name, result]) => [
    name,
    String(result.steps),
    formatDelta(result.logprob_margin_delta, "nats"),
    formatDelta(result.logprob_margin_per_token_delta, "nats"),
    formatP(result.logprob_margin_p).replace(/^p (= )?/, ""),
    formatValue(result.baseline_compliance, "share"),
    `→ ${formatValue(result.final_compliance, "share")}`,
    formatValue(result.capability_ratio, ""),
    result.collapse_alerts === null
      ? missingValueText
      : result.collapse_alerts.map(humanizeName).join(", ") || "none",
    result.verdict,
  ]);
  const unknown = new Map<string, readonly string[]>();
  for (const [name, result] of Object.entries(preferences))
    for (const [value, reason] of Object.entries(result.unknown ?? {})) {
      const note = `${humanizeName(value)}: ${reason}`;
      unknown.set(note, [...(unknown.get(note) ?? []), name]);
    }
  const notes = [
    ...[...unknown].map(([note, names]) => `${names.join(", ")}, not known: ${note}`),
    ...Object.entries(preferences).flatMap(([name, result]) =>
      result.final_compliance === null && typeof result.final_seen_compliance === "number"
        ? [
            `${name}, compliance on training prompts: ${formatValue(result.baseline_seen_compliance, "share")} → ${formatValue(result.final_seen_compliance, "share")}`,
          ]
        : [],
    ),
  ];
  return [plainTable(columns, rows, colours), ...notes].join("\n");
}

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
  if (options.json) return terminal.out(jsonText({ output_dir: output, ...summary, page, plots }));
  terminal.out(`\n${feedbackTable(summary, terminal.colours)}\n`);
  terminal.out(pageLine(page));
}
