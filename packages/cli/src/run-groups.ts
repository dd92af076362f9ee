import { differenceOverRuns, meanOverRuns, PeriodicEvalError, type Estimate } from "@periodic-eval/core";
import { summarizePhases } from "@periodic-eval/dashboard";
import type { LabelledRun } from "./labelled-runs.ts";

export type GroupBy = "condition" | "seed" | "run";

/** One metric of one phase in the runs of one group: means over runs, whose intervals go by runs. */
export interface GroupSummary {
  readonly group: string;
  /** Runs that have both looks. */
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
}

interface Value {
  readonly start: number;
  readonly end: number;
}

/**
 * Start against end of each phase, by group of runs. What one run shows with its questions says how sure one is of that
 * run; how sure one is of a condition, only several runs of it say: intervals here are over runs.
 *
 * @param metrics names of metrics; null for the primary one of each callback.
 * @throws PeriodicEvalError `config` for a metric that no run has, or runs without a condition.
 */
export function compareRuns(
  runs: readonly LabelledRun[],
  by: GroupBy,
  metrics: readonly string[] | null,
): readonly ComparedMetric[] {
  const compared = new Map<string, { of: Omit<ComparedMetric, "groups">; groups: Map<string, Value[]> }>();
  const known = new Set<string>();
  for (const labelled of runs) {
    const group = groupOf(labelled, by);
    for (const { phase, metrics: ofPhase } of summarizePhases(labelled.run)) {
      for (const { id, metric, unit, isPrimary, start, end } of ofPhase) {
        known.add(metric);
        if (metrics === null ? !isPrimary : !metrics.includes(metric)) continue;
        const key = JSON.stringify([phase.name, id, metric]);
        const one = compared.get(key) ?? {
          of: { phase: phase.name, id, metric, unit },
          groups: new Map<string, Value[]>(),
        };
        compared.set(key, one);
        const values = one.groups.get(group) ?? [];
        one.groups.set(group, values);
        if (start.value !== null && end.value !== null && start.step !== end.step)
          values.push({ start: start.value, end: end.value });
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
  return [...compared.values()].map(({ of, groups }) => ({ ...of, groups: summaries(groups) }));
}

function summaries(groups: ReadonlyMap<string, readonly Value[]>): readonly GroupSummary[] {
  const changesOf = (values: readonly Value[]) => values.map(({ start, end }) => end - start);
  const [reference] = groups.values();
  return [...groups].map(([group, values], index) => ({
    group,
    runs: values.length,
    start: meanOverRuns(values.map(({ start }) => start)),
    end: meanOverRuns(values.map(({ end }) => end)),
    change: meanOverRuns(changesOf(values)),
    difference: index === 0 ? null : differenceOverRuns(changesOf(values), changesOf(reference!)),
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
