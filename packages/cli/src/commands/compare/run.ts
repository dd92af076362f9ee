import { PeriodicEvalError, type Range } from "@periodic-eval/core";
import {
  differenceOverRuns,
  rangeOfDifference,
  withinRange,
  type Estimate,
} from "@periodic-eval/core/statistics";
import {
  overRuns,
  reasonsToLeaveOut,
  summarizePhases,
  type MetricSummary,
  formatDelta,
  formatInterval,
  formatP,
  formatValue,
  humanizeName,
} from "@periodic-eval/dashboard";
import type { LabelledRun } from "../../run/read-runs.ts";
import { jsonText, plainTable, type Colours } from "../../terminal/terminal.ts";

/** One metric of one phase in one group of runs: means and intervals over runs. */
export interface GroupSummary {
  readonly group: string;
  /** Number of runs with a complete start and end measurement. */
  readonly runs: number;
  readonly start: Estimate;
  readonly end: Estimate;
  /** Mean over runs of end minus start. */
  readonly change: Estimate;
  /** The group's change minus that of the first group; null for the first. */
  readonly difference: (Estimate & { readonly p: number | null }) | null;
}

export interface ComparedMetric {
  readonly phase: string;
  readonly id: string;
  readonly metric: string;
  readonly unit: string;
  readonly groups: readonly GroupSummary[];
  readonly leftOut: readonly LeftOut[];
}

/** A run that no mean includes, and the reason. */
export interface LeftOut {
  readonly run: string;
  readonly group: string;
  readonly reason: string;
}

interface RunValues {
  readonly of: LabelledRun;
  readonly start: number;
  readonly end: number;
}

/** One metric of one phase while runs are collected. */
interface CollectedMetric {
  readonly of: Pick<ComparedMetric, "phase" | "id" | "metric" | "unit">;
  readonly range: Range;
  readonly groups: Map<string, RunValues[]>;
  /** Why a run is left out; null for a run that counts. */
  readonly reasons: Map<LabelledRun, string | null>;
}

/**
 * Compares start and end of each phase by group of runs. Intervals are over runs: the questions of one run show how certain
 * that run's value is, but only several runs show how certain the value of a condition is. Runs without a complete measurement
 * at start and end, repeated runs, and runs with other options are listed in `leftOut`. Intervals are clipped to the metric's range.
 *
 * @param metrics Names of metrics. Null: the primary metric of each callback.
 * @throws PeriodicEvalError `config` for a metric that no run has.
 */
export function compareRuns(
  runs: readonly LabelledRun[],
  metrics: readonly string[] | null,
): readonly ComparedMetric[] {
  return collectMetrics(runs, metrics).map(({ of, range, groups, reasons }) => ({
    ...of,
    groups: summaries(groups, range),
    leftOut: runs.flatMap((labelled) => {
      const reason = reasons.has(labelled) ? reasons.get(labelled)! : "it has no such measurement";
      return reason === null ? [] : [{ run: labelled.run.runDir, group: groupOf(labelled), reason }];
    }),
  }));
}

function collectMetrics(
  runs: readonly LabelledRun[],
  metrics: readonly string[] | null,
): readonly CollectedMetric[] {
  const collected = new Map<string, CollectedMetric>();
  const known = new Set<string>();
  for (const labelled of runs) {
    const group = groupOf(labelled);
    for (const { phase, metrics: phaseMetrics } of summarizePhases(labelled.run)) {
      for (const summary of phaseMetrics) {
        const { id, metric, unit, range, isPrimary, start, end } = summary;
        known.add(metric);
        if (metrics === null ? !isPrimary : !metrics.includes(metric)) continue;
        const key = JSON.stringify([phase.name, id, metric]);
        const entry = collected.get(key) ?? {
          of: { phase: phase.name, id, metric, unit },
          range,
          groups: new Map<string, RunValues[]>(),
          reasons: new Map<LabelledRun, string | null>(),
        };
        collected.set(key, entry);
        const values = entry.groups.get(group) ?? [];
        entry.groups.set(group, values);
        const reason = reasonToLeaveOut(summary, phase.maxSteps);
        entry.reasons.set(labelled, reason);
        if (reason === null) values.push({ of: labelled, start: start.value!, end: end.value! });
      }
    }
  }
  const missing = metrics?.find((name) => !known.has(name));
  if (missing === undefined) return [...collected.values()].map(withoutRepeats);
  throw new PeriodicEvalError({
    code: "config",
    where: "--metric",
    got: `"${missing}"`,
    expected: `a metric of the runs: ${[...known].join(", ")}`,
    fix: "Use one of these names.",
  });
}

/** Leaves out whole runs that repeat another one or have other options. */
function withoutRepeats({ groups, reasons, ...rest }: CollectedMetric): CollectedMetric {
  const all = [...groups].flatMap(([group, values]) =>
    values.map(({ of }) => ({ of, name: of.run.runDir, run: of.run, config: of.config, group })),
  );
  const exclusions = reasonsToLeaveOut(all, rest.of.id);
  for (const [at, { of }] of all.entries()) if (exclusions[at] !== null) reasons.set(of, exclusions[at]!);
  const counted = [...groups].map(
    ([group, values]) => [group, values.filter(({ of }) => reasons.get(of) === null)] as const,
  );
  return { ...rest, reasons, groups: new Map(counted) };
}

function reasonToLeaveOut(summary: MetricSummary, maxSteps: number | null): string | null {
  const { start, end, notPaired, voidReason, startVoidReason } = summary;
  const length = maxSteps === null ? "" : ` of ${maxSteps}`;
  if (!start.isAtStart) return `its first measurement is at step ${start.step}${length}, not at the start`;
  if (!end.isAtEnd) return `its last measurement is at step ${end.step}${length}, not at the end`;
  if (start.status !== "complete") return `its start is ${start.status}`;
  if (end.status !== "complete") return `its measurement at the end is ${end.status}`;
  if (startVoidReason !== null) return `its start cannot be judged: ${startVoidReason}`;
  if (voidReason !== null) return `its measurement at the end cannot be judged: ${voidReason}`;
  if (start.step === end.step) return "its start is also its end";
  if (start.value === null || end.value === null) return "it has no value at its start or end";
  return notPaired === null ? null : `its start may not be paired with its end: it has ${notPaired}`;
}

function summaries(groups: ReadonlyMap<string, readonly RunValues[]>, range: Range): readonly GroupSummary[] {
  const changeRange = rangeOfDifference(range);
  const changesOf = (values: readonly RunValues[]) => values.map(({ start, end }) => end - start);
  const [reference] = groups.values();
  return [...groups].map(([group, values], index) => ({
    group,
    runs: values.length,
    start: overRuns(
      values.map(({ start }) => start),
      range,
    ),
    end: overRuns(
      values.map(({ end }) => end),
      range,
    ),
    change: overRuns(changesOf(values), changeRange),
    difference:
      index === 0
        ? null
        : withinRange(
            differenceOverRuns(changesOf(values), changesOf(reference!)),
            rangeOfDifference(changeRange),
          ),
  }));
}

/** A run without a condition is a group by itself. */
const groupOf = ({ run, condition }: LabelledRun): string => condition ?? run.runDir;

const columns = [
  { words: "group" },
  "runs",
  "start",
  "end",
  "change",
  "95 % interval over runs",
  "against the first",
  "95 % interval",
  "p",
];

/** Returns a table per phase and metric: each group's change and its difference from the first group, then the excluded runs. */
export function comparisonTables(compared: readonly ComparedMetric[], colours: Colours): string {
  const tables = compared.map(({ phase, id, metric, unit, groups, leftOut }) => {
    const title = `${colours.bold(phase)}  ${humanizeName(id)}: ${humanizeName(metric)}`;
    const rows = groups.filter(({ runs }) => runs > 0).map((group) => groupRow(group, unit));
    const isEmpty = columns.map((_, at) => rows.every((row) => /^(→ )?–$/.test(row[at]!)));
    const filled = <T>(cells: readonly T[]) => cells.filter((__, at) => !isEmpty[at]);
    const excluded = leftOut.map(({ run, reason }) => colours.yellow(`Left out: ${run}: ${reason}`));
    return [title, plainTable(filled(columns), rows.map(filled), colours), ...excluded].join("\n");
  });
  const hasSingleRun = compared.some(({ groups }) => groups.some(({ runs }) => runs === 1));
  const note = "A group of one run has no interval: one run does not show how its condition varies.";
  return [...tables, ...(hasSingleRun ? [colours.dim(note)] : [])].join("\n\n");
}

const groupRow = ({ group, runs, start, end, change, difference }: GroupSummary, unit: string): string[] => [
  group,
  String(runs),
  formatValue(start.value, unit),
  `→ ${formatValue(end.value, unit)}`,
  formatDelta(change.value, unit),
  formatInterval(change.ci95, unit),
  formatDelta(difference?.value, unit),
  formatInterval(difference?.ci95, unit),
  difference === null ? "–" : formatP(difference.p),
];

export function comparisonJson(compared: readonly ComparedMetric[]): string {
  const metrics = compared.map(({ leftOut, ...metric }) => ({ ...metric, left_out: leftOut }));
  return jsonText({ metrics });
}
