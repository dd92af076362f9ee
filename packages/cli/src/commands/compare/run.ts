import { PeriodicEvalError, type Range } from "@periodic-eval/core";
import {
  differenceOverRuns,
  meanOverRuns,
  rangeOfDifference,
  withinRange,
  type Estimate,
} from "@periodic-eval/core/statistics";
import { summarizePhases, type Look } from "@periodic-eval/dashboard";
import type { LabelledRun } from "../../run/labelled-runs.ts";

export type GroupBy = "condition" | "seed" | "run";

/** One metric of one phase in the runs of one group: means over runs, whose intervals go by runs. */
export interface GroupSummary {
  readonly group: string;
  /** Runs that have both looks, complete. */
  readonly runs: number;
  readonly start: Estimate;
  readonly end: Estimate;
  /** End minus start of each run, then the mean. */
  readonly change: Estimate;
  /** Its change minus that of the first group; null for the first. */
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

/** A run that counts in no mean, and why. */
export interface LeftOut {
  readonly run: string;
  readonly group: string;
  readonly reason: string;
}

interface Value {
  readonly start: number;
  readonly end: number;
}

/**
 * Start against end of each phase, by group of runs. What one run shows with its questions says how sure one is of that
 * run; how sure one is of a condition, only several runs of it say: intervals here are over runs. Runs without a complete
 * look at the start and at the end are left out, by name. Intervals stay within what the metric can be, as its snapshots tell it.
 *
 * @param metrics names of metrics; null for the primary one of each callback.
 * @throws PeriodicEvalError `config` for a metric that no run has, or runs without a condition.
 */
export function compareRuns(
  runs: readonly LabelledRun[],
  by: GroupBy,
  metrics: readonly string[] | null,
): readonly ComparedMetric[] {
  const compared = new Map<string, Gathered>();
  const known = new Set<string>();
  for (const labelled of runs) {
    const group = groupOf(labelled, by);
    for (const { phase, metrics: ofPhase } of summarizePhases(labelled.run)) {
      for (const { id, metric, unit, range, isPrimary, start, end } of ofPhase) {
        known.add(metric);
        if (metrics === null ? !isPrimary : !metrics.includes(metric)) continue;
        const key = JSON.stringify([phase.name, id, metric]);
        const one = compared.get(key) ?? {
          of: { phase: phase.name, id, metric, unit },
          range,
          groups: new Map<string, Value[]>(),
          reasons: new Map<LabelledRun, string | null>(),
        };
        compared.set(key, one);
        const values = one.groups.get(group) ?? [];
        one.groups.set(group, values);
        const reason = reasonAgainst(start, end, phase.maxSteps);
        one.reasons.set(labelled, reason);
        if (reason !== null) continue;
        values.push({ start: start.value!, end: end.value! });
      }
    }
  }
  const missing = metrics?.find((name) => !known.has(name));
  if (missing !== undefined) {
    throw new PeriodicEvalError({
      code: "config",
      where: "--metric",
      got: `"${missing}"`,
      expected: `a metric of the runs: ${[...known].join(", ")}`,
      fix: "Write it as the page does.",
    });
  }
  return [...compared.values()].map(({ of, range, groups, reasons }) => ({
    ...of,
    groups: summaries(groups, range),
    leftOut: runs.flatMap((labelled) => {
      const reason = reasons.has(labelled) ? reasons.get(labelled)! : "it has no such look";
      return reason === null ? [] : [{ run: labelled.run.runDir, group: groupOf(labelled, by), reason }];
    }),
  }));
}

interface Gathered {
  readonly of: Pick<ComparedMetric, "phase" | "id" | "metric" | "unit">;
  readonly range: Range;
  readonly groups: Map<string, Value[]>;
  /** Why a run is left out; null where it counts. */
  readonly reasons: Map<LabelledRun, string | null>;
}

function reasonAgainst(start: Look, end: Look, maxSteps: number | null): string | null {
  const length = maxSteps === null ? "" : ` of ${maxSteps}`;
  if (!start.isAtStart) return `its first look is at step ${start.step}${length}, not at the start`;
  if (!end.isAtEnd) return `its last look is at step ${end.step}${length}, not at the end`;
  if (start.status !== "complete") return `its start is ${start.status}`;
  if (end.status !== "complete") return `its end is ${end.status}`;
  if (start.step === end.step) return "its start is its end";
  return start.value === null || end.value === null ? "it has no value at one of its ends" : null;
}

function summaries(groups: ReadonlyMap<string, readonly Value[]>, range: Range): readonly GroupSummary[] {
  const ofChange = rangeOfDifference(range);
  const changesOf = (values: readonly Value[]) => values.map(({ start, end }) => end - start);
  const [reference] = groups.values();
  return [...groups].map(([group, values], index) => ({
    group,
    runs: values.length,
    start: withinRange(meanOverRuns(values.map(({ start }) => start)), range),
    end: withinRange(meanOverRuns(values.map(({ end }) => end)), range),
    change: withinRange(meanOverRuns(changesOf(values)), ofChange),
    difference:
      index === 0
        ? null
        : withinRange(
            differenceOverRuns(changesOf(values), changesOf(reference!)),
            rangeOfDifference(ofChange),
          ),
  }));
}

function groupOf({ run, condition }: LabelledRun, by: GroupBy): string {
  if (by === "run") return run.runDir;
  if (by === "seed") return run.phases[0]!.snapshots[0]!.provenance.seed;
  if (condition !== null) return condition;
  throw new PeriodicEvalError({
    code: "config",
    where: run.runDir,
    got: "a run of no condition",
    expected: "what it stands for",
    fix: `Write condition=${run.runDir} with the condition's name, or --group-by run.`,
  });
}
