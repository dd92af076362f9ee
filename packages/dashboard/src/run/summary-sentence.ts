import type { Paired } from "@periodic-eval/core";
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

/** Metrics whose names say too little in a sentence. */
const subjects: Readonly<Record<string, string>> = {
  misaligned: "share of misaligned answers",
  misaligned_rate: "share of misaligned answers among the coherent ones",
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

function meaningOf(summary: MetricSummary): string {
  const { end, isSingle, metric, against, change, notPaired, firstEvidence } = summary;
  if (end.value === null) return `no value, because the last measurement is ${end.status}`;
  const than = against === null ? "" : `, compared with ${against}`;
  const noun = Object.hasOwn(counted, metric) ? counted[metric]![0] : "rows";
  const earlier = firstEvidence
    ? `, but ${firstEvidence.baseline!.verdict} at step ${firstEvidence.step}`
    : "";
  const at = end.isAtEnd ? " at the end" : ` at step ${end.step}`;
  switch (judgementOf(summary)) {
    case "no change":
      return `no change seen${earlier === "" ? "" : at}${than}${earlier}`;
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
    const others = edgeCounts(summary, unit, "");
    const ofSource = edgeCounts(source, unit, "");
    return `${noun} ${state}: source ${ofSource}; other personas ${others}${difference}`;
  }
  const words = isCounted ? ` ${noun} ${state}` : "";
  const name = isCounted ? "" : `${humanizeName(metric)} `;
  return `${name}${edgeCounts(summary, unit, words)}${difference}`;
}

/**
 * States in one or two sentences the test behind a headline: the change, its interval and level, and the step of the first evidence.
 * `no evidence` becomes “did not change measurably”, with the change that would have been detected.
 */
export function summarySentence(summary: MetricSummary, phase: string): string {
  const { end, isSingle, change, voidReason, startVoidReason } = summary;
  if (end.value === null) return withoutEnd(summary, phase);
  const reason = voidReason ?? (startVoidReason && `At the start: ${startVoidReason}`);
  if (reason !== null) return isSingle ? singleValue(summary, phase) : twoValues(summary, phase, reason);
  if (change === null)
    return isSingle ? singleValue(summary, phase) : twoValues(summary, phase, "it has no baseline");
  if (change.verdict === null || change.delta === null) return untested(summary, phase, change);
  return change.verdict === "no evidence"
    ? withoutEvidence(summary, phase, change)
    : withEvidence(summary, phase, change, change.delta);
}

const subjectOf = ({ metric, id, source }: MetricSummary): string => {
  const leakage = source === null ? "leakage in all personas" : "leakage to other personas";
  const name =
    metric === "leakage_rate"
      ? leakage
      : Object.hasOwn(subjects, metric)
        ? subjects[metric]!
        : humanizeName(metric);
  return `${capitalized(name)} (${humanizeName(id)})`;
};

const valueOf = (measurement: Measurement, { unit }: MetricSummary): string =>
  formatMeasurement(measurement, unit);

const stepOf = ({ phase, step, runStep }: Measurement): string =>
  `step ${step} of ${phase}${runStep === step ? "" : ` (run step ${runStep})`}`;

/** `from 95.0 % to 62.0 %`; false if one of the two was not measured. */
const edges = (summary: MetricSummary): string | false =>
  summary.start.value !== null &&
  !summary.isSingle &&
  `from ${valueOf(summary.start, summary)} to ${valueOf(summary.end, summary)}`;

/** `during em` if the phase was measured from its start to its end; otherwise the steps. */
function during({ start, end, isSingle }: MetricSummary, phase: string): string {
  if (isSingle) return `at step ${end.step} of ${phase}`;
  return start.isAtStart && end.isAtEnd
    ? `during ${phase}`
    : `between steps ${start.step} and ${end.step} of ${phase}`;
}

const singleValue = (summary: MetricSummary, phase: string): string =>
  `${subjectOf(summary)} was ${valueOf(summary.end, summary)} at step ${summary.end.step} of ${phase}, its only measurement in this phase.`;

function withoutEnd(summary: MetricSummary, phase: string): string {
  const { start, end, firstEvidence } = summary;
  const before = start.value === null ? "" : ` At step ${start.step} it was ${valueOf(start, summary)}.`;
  const evidence = firstEvidence
    ? ` First evidence of a change (${firstEvidence.baseline!.verdict}) at ${stepOf(firstEvidence)}.`
    : "";
  return `${subjectOf(summary)} has no value at step ${end.step} of ${phase}: the measurement is ${end.status}.${before}${evidence}`;
}

function twoValues(summary: MetricSummary, phase: string, why: string): string {
  const { start, end } = summary;
  const first = start.value === null ? "" : `${valueOf(start, summary)} at step ${start.step} and `;
  return `${subjectOf(summary)} was ${first}${valueOf(end, summary)} at step ${end.step} of ${phase}. The difference was not tested: ${why.replace(/\.$/, "")}.${earlier(summary)}`;
}

function untested(summary: MetricSummary, phase: string, { n_pairs: pairs }: Paired): string {
  const why = pairs === 0 ? "no item was observed in both measurements" : "there are too few observations";
  return summary.isSingle
    ? `${singleValue(summary, phase)} Its difference from ${summary.against} was not tested: ${why}.`
    : twoValues(summary, phase, why);
}

/** The level of a test, as in the tags of the tables; `exploratory` for comparisons outside the planned ones. */
const levelOf = ({ alpha, exploratory }: Paired): string =>
  `${formatPercent(100 * (alpha ?? 0.05))}${exploratory ? ", exploratory" : ""}`;

function withoutEvidence(summary: MetricSummary, phase: string, change: Paired): string {
  const { against, unit } = summary;
  const detectable = change.minimal_detectable_change;
  const facts = [
    against === null
      ? edges(summary) || valueOf(summary.end, summary)
      : `${valueOf(summary.end, summary)}, ${differenceOf(summary, change)}`,
    `tested at ${levelOf(change)}`,
    detectable === null
      ? "the detectable change is unknown"
      : `${formatDelta(Math.abs(detectable), unit).replace("+", "±")} detectable`,
  ];
  const what =
    against === null
      ? `did not change measurably ${during(summary, phase)}`
      : `did not differ measurably from ${against}, at step ${summary.end.step} of ${phase}`;
  return `${subjectOf(summary)} ${what} (${facts.join("; ")}).${earlier(summary)}`;
}

/** Names earlier evidence that the last measurement does not show. */
function earlier({ firstEvidence, end }: MetricSummary): string {
  if (!firstEvidence) return "";
  return ` There was evidence of a change (${firstEvidence.baseline!.verdict}) at ${stepOf(firstEvidence)}, but not at step ${end.step}.`;
}

/** `−27.0 points [−36.9, −16.6]`, over the paired items if the change covers only those. */
const differenceOf = ({ unit, against, isOverPairs }: MetricSummary, change: Paired): string =>
  [
    formatDelta(change.delta, unit),
    ...(change.ci95 ? [formatInterval(change.ci95, unit)] : []),
    ...(against !== null || isOverPairs ? [overPairs(change)] : []),
  ].join(" ");

function withEvidence(summary: MetricSummary, phase: string, change: Paired, delta: number): string {
  const { start, end, against } = summary;
  const facts = `${differenceOf(summary, change)}; ${change.verdict} at ${levelOf(change)}`;
  const evidence = `first evidence at ${stepOf(summary.firstEvidence ?? end)}.`;
  const subject = subjectOf(summary);
  if (against !== null) {
    const side = delta > 0 ? "higher" : "lower";
    return `${subject} was ${valueOf(end, summary)} at step ${end.step} of ${phase}, ${side} than at ${against} (${facts}); ${evidence}`;
  }
  const moved = delta > 0 ? "rose" : "fell";
  if (start.value !== null && Math.sign(end.value! - start.value) === Math.sign(delta))
    return `${subject} ${moved} ${edges(summary)} ${during(summary, phase)} (${facts}); ${evidence}`;
  // Over the items that both measurements observed, a metric can rise although its value over all items falls.
  const all = `; over all items, it ${edges(summary) ? `went ${edges(summary)}` : `was ${valueOf(end, summary)}`}`;
  return `${subject} ${moved} over the items that both measurements observed, ${during(summary, phase)} (${facts})${all}; ${evidence}`;
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
