import type { HarnessConfig, MetricName } from "../config/schema.ts";
import { capabilityRatio } from "../metrics/general.ts";
import { alertSigns } from "../metrics/collapse.ts";
import {
  unknownFields,
  type BaselineFile,
  type PreferenceSummary,
  type StepEval,
  type StepLine,
  type Unknown,
} from "./files.ts";
import { verdictOf } from "./verdict.ts";

/** Summarises the lines of a preference by the last known value of each metric. */
export function summaryOf(
  baseline: BaselineFile,
  lines: readonly StepLine[],
  config: Pick<HarnessConfig, "num_steps" | "metrics">,
): PreferenceSummary {
  const { eval: before, lora_id: loraId, unknown = {} } = baseline;
  const last = <T>(read: (line: StepLine) => T | null): T | null =>
    lines.map(read).findLast((value) => value !== null) ?? null;
  const margin = last(({ eval: seen }) => seen.logprob_margin);
  const compliance = last(({ eval: seen }) => seen.preference_compliance);
  const general = last(({ eval: seen }) => seen.general);
  const collapses = lines.flatMap(({ eval: { collapse } }) => collapse ?? []);
  const hasSign = (sign: (typeof alertSigns)[number]) =>
    collapses.some((collapse) => collapse[sign] !== null);
  const facts = {
    logprob_margin_delta: margin?.margin_delta ?? null,
    logprob_margin_per_token_delta: margin?.margin_per_token_delta ?? null,
    logprob_margin_p: margin?.p ?? null,
    baseline_compliance: before.preference_compliance?.held_out ?? null,
    final_compliance: compliance?.held_out ?? null,
    baseline_seen_compliance: before.preference_compliance?.seen ?? null,
    final_seen_compliance: compliance?.seen ?? null,
    capability_ratio: capabilityRatio(general?.general ?? null, before.general?.general ?? null),
    collapse_alerts: alertSigns.some(hasSign)
      ? [...new Set(collapses.flatMap(({ alerts }) => alerts))]
      : null,
  };
  const why = (metric: MetricName, otherwise: string) =>
    !config.metrics.includes(metric)
      ? `${metric} is not among the metrics`
      : lines.length === 0
        ? "no step is finished"
        : otherwise;
  const signs = alertSigns.flatMap((sign) => {
    const reason = collapses.at(-1)?.unknown[sign];
    return reason === undefined || hasSign(sign) ? [] : [[sign, reason] as const];
  });
  const merged: Unknown = Object.assign({}, unknown, ...lines.map((line) => line.unknown)) as Unknown;
  return {
    lora_id: loraId,
    status: lines.length < config.num_steps ? "running" : "finished",
    steps: lines.length,
    ...facts,
    verdict: verdictOf(facts),
    ...unknownFields({
      // First for the order of the keys; again below, because the reason of a line is the more precise one.
      ...merged,
      ...(facts.logprob_margin_delta === null && {
        logprob_margin_delta: why("logprob", margin?.reason ?? "no reason was given"),
      }),
      ...(facts.final_compliance === null &&
        merged["held_out_compliance"] === undefined && {
          final_compliance: why("compliance", "no answer was graded"),
        }),
      ...(facts.capability_ratio === null && {
        capability_ratio: why("general", whyNoRatio(before.general)),
      }),
      ...(facts.collapse_alerts === null && {
        collapse_alerts: why(
          "collapse",
          collapses.length === 0 ? "no finished step is one of collapse_steps" : "no sign is known",
        ),
      }),
      ...Object.fromEntries(signs),
      ...merged,
    }),
  };
}

const whyNoRatio = (before: StepEval["general"]): string => {
  if ((before?.general ?? null) === null) return "the baseline's general score is not known";
  return before!.general === 0
    ? "the baseline's general score is 0"
    : "no general score is known after a step";
};
