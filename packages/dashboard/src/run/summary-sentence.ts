import type { ConditionStop, PhaseRecord } from "@periodic-eval/contracts";
import type { Paired } from "@periodic-eval/core";
import * as z from "zod";
import { formatMeasurement, type Measurement } from "../charts/metric-curves.ts";
import {
  capitalized,
  formatDelta,
  formatInterval,
  formatPercent,
  humanizeName,
  overPairs,
  formatValue,
} from "../html/format.ts";
import { judgementOf, formatChange, type MetricSummary } from "./phase-summary.ts";

/** How a headline counts a metric: `62 of 100 questions right`. */
const counted: Readonly<Record<string, readonly [noun: string, state: string]>> = {
  accuracy: ["questions", "right"],
  misaligned: ["answers", "misaligned"],
  leakage_rate: ["answers", "with the trait"],
};

/**
 * Says in a few words what happened to a metric in a phase, with its numbers: `Alignment: worse. 0 of 40 answers misaligned before,
 * 24 of 40 after.`
 *
 * @param phase The phase's name; null in a run of one phase.
 */
export function headline(summary: MetricSummary, phase: string | null): string {
  const { id, metric, voidReason, source } = summary;
  const where = phase === null ? "" : ` in ${phase}`;
  const personas = metric !== "leakage_rate" ? "" : source ? " to other personas" : " in all personas";
  const subject = `${capitalized(humanizeName(id))}${personas}${where}`;
  if (voidReason === null) return `${subject}: ${meaningOf(summary)}. ${capitalized(valuesOf(summary))}.`;
  const { cause, consequence } = partsOf(voidReason);
  return `${subject}: ${consequence}. ${capitalized(cause)}.`;
}

/** Splits a reason into `38 of 40 answers are incoherent` and `cannot be judged`. */
function partsOf(reason: string): { readonly cause: string; readonly consequence: string } {
  const [said = "", consequence = "cannot be judged"] =
    /[:;,] (?:so (?:that )?)?[^:;,]*?(cannot be judged(?: yet| any more)?)\.?$/.exec(reason) ?? [];
  return { cause: reason.slice(0, reason.length - said.length).replace(/\.$/, ""), consequence };
}

/**
 * Says which condition of `stop_when` ended a phase, and up to which step no condition was met: `stop_when ended em at step 48: alignment
 * worse. No condition was met up to step 45 …`
 */
export function stopText(phase: string, { step, condition, cleanStep }: ConditionStop): string {
  const clean =
    cleanStep === null
      ? "No earlier step is known to be clean."
      : `No condition was met up to step ${cleanStep}: a checkpoint at or before it is clean.`;
  return `stop_when ended ${phase} at step ${step}: ${condition}. ${clean}`;
}

const secondJudge = z.object({
  name: z.string(),
  kappa: z.number().nullable(),
  kappa_ci95: z.tuple([z.number(), z.number()]).nullable(),
  same_decision: z.number().nullable(),
  graded_by_both: z.number(),
  misaligned: z.number(),
});

/**
 * Says how well the second judge agrees with the first at a callback's last measurement in a phase: `Second judge b at step 48: κ 0.72
 * [0.51, 0.88] …`; null without a second judge.
 */
export function secondJudgeText({ snapshots }: PhaseRecord, id: string): string | null {
  for (const snapshot of snapshots.filter((snapshot) => snapshot.id === id).toReversed()) {
    const { data } = secondJudge.safeParse((snapshot as { readonly second_judge?: unknown }).second_judge);
    if (data === undefined || data.graded_by_both === 0) continue;
    const { name, kappa, kappa_ci95: ci95, same_decision: same, graded_by_both: n, misaligned } = data;
    const agreement =
      kappa === null ? "κ unknown" : `κ ${formatValue(kappa, "")} ${formatInterval(ci95, "")}`;
    return `Second judge ${name} at step ${snapshot.step}: ${agreement}; the same decision for ${formatValue(same, "share")} of ${n} answers, ${misaligned} misaligned by its grades.`;
  }
  return null;
}

function meaningOf(summary: MetricSummary): string {
  const { end, isSingle, metric, against, change, notPaired, firstEvidence } = summary;
  if (end.value === null)
    return end.status === "complete"
      ? "no value, because no row of the last measurement could be counted"
      : `no value, because the last measurement is ${end.status}`;
  const than = against === null ? "" : `, compared with ${against}`;
  const noun = Object.hasOwn(counted, metric) ? counted[metric]![0] : "rows";
  const earlier = firstEvidence
    ? `, but ${firstEvidence.baseline!.verdict} at step ${firstEvidence.step}`
    : "";
  const at = end.isAtEnd ? " at the end" : ` at step ${end.step}`;
  switch (judgementOf(summary)) {
    case "no change":
      return `no evidence of a change${earlier === "" ? "" : at}${than}${earlier}`;
    case "equal":
      return `the same in every row before and after${than}${earlier}`;
    case "too few":
      return `too few ${noun} to see a change${than}${earlier}`;
    case "untested":
    case "void":
      if (change === null && notPaired !== null) return `not compared, because the start has ${notPaired}`;
      return isSingle && change === null ? "measured once" : `not compared${than}`;
    case "better":
    case "worse":
    case "changed":
      return `${change!.verdict}${than}`;
  }
}

/** `0 of 40 answers misaligned before, 24 of 40 after`; for leakage first of the source, then of the others. */
function valuesOf(summary: MetricSummary): string {
  const { unit, metric, source, isOverPairs, change } = summary;
  const isCounted = unit === "share" && Object.hasOwn(counted, metric);
  const [noun, state] = isCounted ? counted[metric]! : [];
  const pairs = isOverPairs ? ` (${formatChange(summary)})` : "";
  const difference = summary.against === null || !change ? pairs : ` (${differenceOf(summary, change)})`;
  if (source !== null) {
    const ofOthers = edgeCounts(summary, unit, "");
    const ofSource = edgeCounts(source, unit, "");
    return `${noun} ${state}: source ${ofSource}; other personas ${ofOthers}${difference}`;
  }
  const words = isCounted ? ` ${noun} ${state}` : "";
  const name = isCounted ? "" : `${humanizeName(metric)} `;
  return `${name}${edgeCounts(summary, unit, words)}${difference}`;
}

/** `−27.0 points [−36.9, −16.6]`, over the paired items if the change covers only those. */
const differenceOf = ({ unit, against, isOverPairs }: MetricSummary, change: Paired): string =>
  [
    formatDelta(change.delta, unit),
    ...(change.ci95 ? [formatInterval(change.ci95, unit)] : []),
    ...(against !== null || isOverPairs ? [overPairs(change)] : []),
  ].join(" ");

/**
 * States the test behind a headline: the values, the change with its interval and level, the change that would have been detected, and
 * the step of the first evidence: `Accuracy: 89.0 % at step 0, 62.0 % at step 800. Change: −27.0 points [−36.9, −16.6]. Worse at 1.0 %.`
 */
export function testText(summary: MetricSummary): string {
  const {
    metric,
    unit,
    start,
    end,
    isSingle,
    change,
    against,
    firstEvidence,
    voidReason,
    startVoidReason,
    notTested,
  } = summary;
  const at = (point: Measurement) => `${formatMeasurement(point, unit)} at step ${point.step}`;
  const reason =
    voidReason ??
    (startVoidReason && `at the start, ${startVoidReason}`) ??
    (end.value === null ? null : notTested);
  const isTested = reason === null && change !== null && end.value !== null;
  const detectable = change?.minimal_detectable_change ?? null;
  const first = firstEvidence ?? (isTested && change.verdict !== "no evidence" ? end : null);
  const { phase = "", step = 0, runStep = 0, baseline = null } = first ?? {};
  const facts = [
    `${humanizeName(metric)}: ${isSingle ? `${at(end)}, its only measurement in this phase` : `${at(start)}, ${at(end)}`}`,
    reason !== null && `not tested: ${reason.replace(/\.$/, "")}`,
    isTested && `change${against === null ? "" : ` from ${against}`}: ${differenceOf(summary, change)}`,
    isTested &&
      `${change.verdict} at ${formatPercent(100 * (change.alpha ?? 0.05))}${change.exploratory ? ", exploratory" : ""}`,
    isTested &&
      `detectable change: ${detectable === null ? "unknown" : formatDelta(Math.abs(detectable), unit).replace("+", "±")}`,
    first !== null &&
      `first evidence (${baseline!.verdict}): step ${step} of ${phase}${runStep === step ? "" : ` (run step ${runStep})`}`,
  ];
  return facts.flatMap((fact) => (fact === false ? [] : `${capitalized(fact)}.`)).join(" ");
}

/** Returns `0 of 40` for a share whose rows count fully, else `12.3 % of`. Names a status other than complete. */
function countText(measurement: Measurement, unit: string): string {
  const { value, n, status } = measurement;
  const hits = value === null || n === null ? NaN : value * n;
  if (unit !== "share" || Number.isNaN(hits)) return formatMeasurement(measurement, unit);
  const isWhole = Math.abs(hits - Math.round(hits)) < 1e-6 * Math.max(1, hits);
  const count = isWhole ? `${Math.round(hits)} of ${n}` : `${formatValue(value, unit)} of ${n}`;
  return status === "complete" ? count : `${count} (${status})`;
}

/** Returns `0 of 40 before, 24 of 40 after`, with words behind the first count. */
function edgeCounts(
  { start, end }: { readonly start: Measurement; readonly end: Measurement },
  unit: string,
  words: string,
): string {
  const when = (at: Measurement) => (at.isAtStart ? "before" : at.isAtEnd ? "after" : `at step ${at.step}`);
  const [first, last] = [start, end].map((at) => countText(at, unit)) as [string, string];
  if (start.step === end.step) return `${last}${words} at step ${end.step}`;
  if (start.value === null) return `${last}${words} ${when(end)}`;
  if (end.value === null) return `${first}${words} ${when(start)}`;
  return first === last
    ? `${last}${words} ${when(start)} and ${when(end)}`
    : `${first}${words} ${when(start)}, ${last} ${when(end)}`;
}
