import {
  measure,
  PeriodicEvalError,
  type AnyEvaluation,
  type Grader,
  type MetricValue,
  type Row,
  type Snapshot,
} from "@periodic-eval/core";
import { summarizeReceipt } from "@periodic-eval/store";
import type { HarnessConfig, MetricName } from "../config/schema.ts";
import type { FeedbackModel } from "../engine/types.ts";
import { valueOrReason } from "../metrics/collapse-reference.ts";
import {
  collapseEvaluation,
  collapseReference,
  signsOf,
  type CollapseProbes,
  type CollapseSign,
} from "../metrics/collapse.ts";
import type { CollapseRow } from "../metrics/collapse-rows.ts";
import { complianceEvaluation, type GradedComplianceRow } from "../metrics/compliance.ts";
import { type GeneralQuestion, generalEvaluation, type GradedGeneralRow } from "../metrics/general.ts";
import {
  marginDelta,
  preferenceMarginEvaluation,
  sumOrNull,
  type PreferenceMarginRow,
} from "../metrics/preference-margin.ts";
import type { Preference } from "../preferences/preference.ts";
import { unknownResults } from "../preferences/unknown-results.ts";
import type { BaselineFile, Rollout, StepEval, Unknown } from "./files.ts";

export interface MeasureInputs {
  readonly config: HarnessConfig;
  /** From `withTrainPrompts`. */
  readonly preference: Preference;
  readonly grader: Grader;
  readonly probes: CollapseProbes;
  /** Null: the coding task and the instructions. */
  readonly questions: readonly GeneralQuestion[] | null;
  readonly model: FeedbackModel;
  readonly signal: AbortSignal;
}

/** A measurement, with the data that later measurements are compared with if it is the baseline. */
export type Measurement = Pick<BaselineFile, "eval" | "margin_rows" | "collapse_reference"> & {
  /** The reason for each value that is not known. */
  readonly unknown: Unknown;
};

type Measured = { readonly snapshot: Snapshot; readonly rows: readonly Row[] };

/**
 * Measures the current model: the metrics requested at this step, or all of them for the baseline.
 *
 * @param step Number of completed updates, 0 for the baseline. It is part of the random seeds.
 * @throws PeriodicEvalError `model` if the model lacks an ability that a metric needs; `receipt` if a measurement changed it.
 */
export async function measureModel(
  inputs: MeasureInputs,
  step: number,
  baseline: BaselineFile | null,
): Promise<Measurement> {
  const { config, preference, grader, probes, questions, model, signal } = inputs;
  const run = async (name: MetricName, make: () => AnyEvaluation): Promise<Measured | null> => {
    const isDue = name !== "collapse" || baseline === null || config.collapse_steps.includes(step - 1);
    if (!config.metrics.includes(name) || !isDue) return null;
    const measured = await measure(make(), model.evaluable, {
      signal,
      seed: String(config.seed),
      guards: model.guards ?? [],
      as: { phase: preference.name, id: name, step },
    });
    checkUndisturbed(measured.snapshot, name);
    return measured;
  };
  const scored = await valueOrReason(async () =>
    model.evaluable.logLikelihoods === undefined
      ? null
      : run("logprob", () => preferenceMarginEvaluation({ preference })),
  );
  const margin = scored.value;
  const compliance = await run("compliance", () => complianceEvaluation({ preference, grader }));
  const general = await run("general", () => generalEvaluation(questions === null ? {} : { questions }));
  const reference = baseline?.collapse_reference ?? null;
  const collapse = await run("collapse", () =>
    collapseEvaluation({ probes, ...(reference !== null && { reference }) }),
  );
  const marginRows = (margin?.rows ?? null) as readonly PreferenceMarginRow[] | null;
  const unknown = unknownResults(preference, config.metrics);
  return {
    eval: {
      logprob_margin:
        margin === null
          ? config.metrics.includes("logprob")
            ? { ...noMargin, reason: scored.reason ?? "the engine scores no given text" }
            : null
          : {
              ...marginOf(margin.snapshot, marginRows!, baseline, config.seed),
              ...(unknown.logprob_margin_p !== undefined && { p: null }),
            },
      preference_compliance: compliance && complianceOf(compliance.snapshot),
      general: general && generalOf(general.snapshot),
      collapse: collapse && collapseOf(collapse.snapshot),
      rollouts: rolloutsOf(compliance, general, collapse),
    },
    margin_rows: marginRows,
    unknown: {
      ...model.unknown,
      ...unknown,
      ...(marginRows !== null &&
        baseline?.margin_rows === null && { logprob_margin_delta: "the baseline's margin is not known" }),
      ...(marginRows?.some(({ truncatedTokens }) => truncatedTokens === null) && {
        truncated_tokens: "the engine does not report how many tokens of a context it cut",
      }),
    },
    collapse_reference: collapse === null ? null : collapseReference(collapse.rows as readonly CollapseRow[]),
  };
}

/** Requires that a measurement left the model unchanged: the change would be counted as learned. */
function checkUndisturbed({ receipt }: Snapshot, metric: MetricName): void {
  const { broken } = summarizeReceipt(receipt);
  if (broken.length === 0) return;
  throw new PeriodicEvalError({
    code: "receipt",
    where: `the measurement of ${metric}`,
    got: `changes to ${broken.join(", ")}`,
    expected: "a measurement that does not change training",
    fix: "Correct the verifier or the engine that makes these changes, then run again: the run resumes at the last checkpoint.",
  });
}

const noMargin = {
  margin: null,
  margin_per_token: null,
  margin_delta: null,
  margin_per_token_delta: null,
  p: null,
  n: 0,
} as const;

const valueOf = (metrics: Readonly<Record<string, MetricValue>>, name: string) =>
  metrics[name]?.value ?? null;

function marginOf(
  { metrics }: Snapshot,
  rows: readonly PreferenceMarginRow[],
  baseline: BaselineFile | null,
  seed: number,
): NonNullable<StepEval["logprob_margin"]> {
  const before = baseline?.margin_rows ?? null;
  const truncated = sumOrNull(rows.map(({ truncatedTokens }) => truncatedTokens));
  const change = before === null ? null : marginDelta(rows, before, String(seed));
  return {
    margin: valueOf(metrics, "logprob_margin"),
    margin_per_token: valueOf(metrics, "logprob_margin_per_token"),
    margin_delta: change?.delta ?? null,
    margin_per_token_delta: change?.deltaPerToken ?? null,
    p: change?.p ?? null,
    n: rows.length,
    ...(truncated !== 0 && { truncated_tokens: truncated }),
    reason: null,
  };
}

function complianceOf({ metrics, ...keys }: Snapshot): StepEval["preference_compliance"] {
  return {
    held_out: valueOf(metrics, "compliance"),
    held_out_n: metrics["compliance"]?.n ?? 0,
    seen: valueOf(metrics, "seen_compliance"),
    seen_n: metrics["seen_compliance"]?.n ?? 0,
    ungraded: (keys as Readonly<Record<string, unknown>>)["ungraded"] as number,
  };
}

const generalOf = ({ metrics, ...keys }: Snapshot): StepEval["general"] => ({
  general: valueOf(metrics, "general"),
  coding: valueOf(metrics, "coding"),
  instructions: valueOf(metrics, "instructions"),
  failures: (keys as Readonly<Record<string, unknown>>)["failures"] as Record<string, string>,
});

function collapseOf({ metrics, ...keys }: Snapshot): StepEval["collapse"] {
  const { alerts, unknown } = keys as Readonly<Record<string, unknown>>;
  return {
    ...signsOf(metrics),
    alerts: alerts as readonly CollapseSign[],
    unknown: unknown as Readonly<Record<string, string>>,
  };
}

function rolloutsOf(
  compliance: Measured | null,
  general: Measured | null,
  collapse: Measured | null,
): readonly Rollout[] {
  const complianceRollouts = ((compliance?.rows ?? []) as readonly GradedComplianceRow[]).map(
    ({ question, text, reward }): Rollout => ({
      of: "compliance",
      prompt: question,
      response: text,
      score: reward,
    }),
  );
  const generalRollouts = ((general?.rows ?? []) as readonly GradedGeneralRow[]).map(
    ({ question, text, score }): Rollout => ({ of: "general", prompt: question, response: text, score }),
  );
  const collapseRollouts = ((collapse?.rows ?? []) as readonly CollapseRow[]).flatMap(({ prompt, answers }) =>
    answers.map(({ text }): Rollout => ({ of: "collapse", prompt, response: text, score: null })),
  );
  return [...complianceRollouts, ...generalRollouts, ...collapseRollouts];
}
