import type { RunRecord, SeriesPoint, PhaseRecord, Series } from "@periodic-eval/contracts";
import { shellWord, abbreviated, didYouMean, quoteValue } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { adapterOffId, type Condition } from "@periodic-eval/core/session";
import {
  phaseText,
  runState,
  summarizePhases,
  type MetricSummary,
  type PhaseSummary,
  isGroupMetric,
} from "@periodic-eval/dashboard";
import {
  type DetectableChange,
  decide,
  wrongCondition,
  type DecidingInterval,
  type Inconclusive,
} from "./decide.ts";

/** A condition checked against one metric of one phase. */
export interface Check {
  readonly condition: Condition;
  /** `failed`: the condition is true. */
  readonly outcome: "passed" | "failed" | "inconclusive";
  readonly phase: string | null;
  readonly id: string | null;
  readonly metric: string | null;
  /** The metric at the start and end of the phase; null if the run, its phase or its last measurement has no value. */
  readonly summary: MetricSummary | null;
  /** The interval that decides a condition on the value, and the questions that it is for; null for other conditions. */
  readonly interval: DecidingInterval | null;
  /** Why the condition is inconclusive, and what to do; null if it is not. */
  readonly inconclusive: Inconclusive | null;
}

/**
 * Checks conditions against the last measurement of each phase that they name. All are inconclusive in a run that is damaged
 * or has not ended.
 *
 * @param detectable The largest detectable changes at which `no evidence` passes, by unit.
 * @throws PeriodicEvalError `config` for a condition that the run's metrics cannot have.
 */
export function checkConditions(
  run: RunRecord,
  conditions: readonly Condition[],
  detectable: readonly DetectableChange[] = [],
): readonly Check[] {
  const inconclusive = whyInconclusive(run);
  if (inconclusive !== null)
    return conditions.map((condition) => ({
      condition,
      outcome: "inconclusive",
      phase: null,
      id: null,
      metric: null,
      summary: null,
      interval: null,
      inconclusive,
    }));
  const phases = summarizePhases(run);
  return conditions.flatMap((condition) =>
    findMetrics(run, condition.name).map((named) => checkMetric(condition, named, phases, detectable)),
  );
}

/** Returns why every condition on a run is inconclusive; null if none has to be. */
function whyInconclusive(run: RunRecord): Inconclusive | null {
  const { runDir, problems, phases } = run;
  if (problems.length > 0) {
    const { file, message } = problems[0]!;
    const more = problems.length === 1 ? "" : ` (and ${problems.length - 1} more)`;
    return {
      reason: `the run is damaged: ${file}: ${message}${more}`,
      fix: `npx periodic-eval verify ${shellWord(runDir)} lists all damage. Restore the files from a copy, or resume the run.`,
    };
  }
  const { state, explanation } = runState(run);
  if (phases.length === 0 && state !== "running")
    return {
      reason: "the folder has no snapshot",
      fix: "Pass the folder that was run_dir. A training without a periodic_eval block measures nothing.",
    };
  return state === "finished" ? null : { reason: explanation, fix: fixOfState[state] };
}

const fixOfState = {
  running: "Run the gate after the training has ended.",
  interrupted: "Resume the run until its training has ended.",
  unknown:
    "Run the gate after the training has ended. If its process was killed, resume the run: the same command goes on by itself.",
} as const;

function checkMetric(
  condition: Condition,
  { phase, series, metric }: NamedMetric,
  phases: readonly PhaseSummary[],
  detectable: readonly DetectableChange[],
): Check {
  const checked = { condition, phase: phase.name, id: series.id, metric, summary: null, interval: null };
  const because = (reason: string, fix: string): Check => ({
    ...checked,
    outcome: "inconclusive",
    inconclusive: { reason, fix },
  });
  const last = series.points.at(-1)!;
  if (phase.state !== "finished")
    return because(`the phase ${phase.name}: ${phaseText(phase)}`, fixOfState[phase.state]);
  const end = phase.closedAt ?? phase.snapshots.at(-1)!.step;
  if (last.status === "skipped") return because(statusReason(last), fixOfSkip(last, end));
  if (last.status !== "complete") return because(statusReason(last), fixOfStatus[last.status]);
  if (metric === null)
    throw wrongCondition(condition, "an evaluation without a primary metric", `${series.id}.METRIC`);
  if (last.step < end)
    return because(
      `the last measurement is at step ${last.step}, and the phase ended at step ${end}`,
      "If a file is lost, restore it. Otherwise measure at the end too: it is the default, unless `atEnd` is false.",
    );
  const summary = phases
    .find((other) => other.phase.name === phase.name)
    ?.metrics.find((candidate) => candidate.id === series.id && candidate.metric === metric);
  if (summary === undefined || (summary.end.value === null && summary.voidReason === null))
    return because(
      `the last measurement, at step ${last.step}, has no value of ${metric}`,
      "Look at its answers on the page, and measure more questions or samples.",
    );
  return { ...checked, summary, ...decide(condition, summary, detectable) };
}

const statusReason = ({ step, status, reason }: SeriesPoint): string =>
  `the last measurement, at step ${step}, is ${status === "grading" ? "not graded yet" : status}${reason === null ? "" : `: ${reason}`}`;

const resume = "Resume the run, which repeats the measurement.";
const fixOfStatus = {
  grading: "Resume the run, which grades the answers.",
  failed: `${resume} After an outage of the judge, npx periodic-eval rejudge RUN grades the answers.`,
  partial: resume,
} as const;

function fixOfSkip({ step, warnings }: SeriesPoint, end: number): string {
  if (warnings.some(({ kind }) => kind === "disabled"))
    return "Its questions could not be loaded: name a file in `questions`.";
  return step < end
    ? "Measure at the end too, which the budget never skips: it is the default, unless `atEnd` is false."
    : resume;
}

/** A metric that a condition names, in one phase. */
interface NamedMetric {
  readonly phase: PhaseRecord;
  readonly series: Series;
  /** Null if the name has no metric and no measurement of the evaluation says which one is primary. */
  readonly metric: string | null;
}

/**
 * Returns all metrics that a name matches, in run order: `id` is the primary metric of an evaluation, `id.metric` any metric, in
 * each phase that measures it; `phase/` in front selects a phase.
 *
 * @throws PeriodicEvalError `config` for a name that the run does not have.
 */
function findMetrics(run: RunRecord, name: string): readonly NamedMetric[] {
  const places = run.phases.flatMap((phase) =>
    phase.series.filter(isGated).map((series) => ({ phase, series, ...metricsOf(run, series.id) })),
  );
  const matches = places.flatMap(({ phase, series, metrics, primary }) =>
    [series.id, `${phase.name}/${series.id}`].flatMap((prefix): readonly NamedMetric[] => {
      if (name === prefix) return [{ phase, series, metric: primary }];
      if (!name.startsWith(`${prefix}.`)) return [];
      const written = name.slice(prefix.length + 1);
      // Failed measurements do not say which metrics the evaluation has.
      const isKnown = metrics.length === 0 || metrics.includes(written);
      return isKnown ? [{ phase, series, metric: written }] : [];
    }),
  );
  if (matches.length > 0) return matches;
  const ids = places.map(({ series }) => series.id);
  const names = places.flatMap(({ series: { id }, metrics }) => metrics.map((metric) => `${id}.${metric}`));
  const known = [...new Set([...ids, ...names])];
  const ofPhases = run.phases.flatMap((phase) => known.map((key) => `${phase.name}/${key}`));
  const suggestion = didYouMean(name, [...known, ...ofPhases]);
  const metric = name.slice(0, name.lastIndexOf("/"));
  const groups = known.filter((key) => isGroupMetric(key) && metric.endsWith(key.slice(0, key.indexOf("/"))));
  throw new PeriodicEvalError({
    code: "config",
    where: "--fail-on",
    got: quoteValue(name),
    expected:
      groups.length > 0
        ? `a group of the metric: ${abbreviated(groups.join(", "), 1000)}`
        : `an evaluation or a metric of the run: ${abbreviated(known.filter((key) => !isGroupMetric(key)).join(", "), 1000)}`,
    fix: suggestion ?? "Use one of these names, with phase/ in front for a single phase.",
  });
}

/** A measurement without the adapter is a baseline: it says nothing about the trained model. */
const isGated = ({ id, on }: Series): boolean => on === "model" || !id.endsWith(adapterOffId(""));

/** Returns what a callback measures in any phase of the run. */
function metricsOf(run: RunRecord, id: string) {
  const all = run.phases.flatMap(({ series }) => series.filter((callback) => callback.id === id));
  const metrics = all.flatMap(({ points }) => points.flatMap((point) => Object.keys(point.metrics)));
  const primary = all.find(({ primaryMetric }) => primaryMetric !== null)?.primaryMetric ?? null;
  return { metrics: [...new Set(metrics)], primary };
}
