import { describe, expect, it } from "vitest";
import type { BaselineFile, StepEval, StepLine } from "./files.ts";
import { summaryOf } from "./summary.ts";

const nothing: StepEval = {
  logprob_margin: null,
  preference_compliance: null,
  general: null,
  collapse: null,
  rollouts: [],
};
const general = (score: number | null): Partial<StepEval> => ({
  general: { general: score, coding: null, instructions: score, failures: {} },
});
const noSigns = {
  entropy_nats: null,
  entropy_ratio: null,
  self_rouge_l: null,
  own_drift: null,
  baseline_drift: null,
  alerts: [],
  unknown: { entropy_ratio: "no entropies", own_drift: "no scores" },
};

const config: Parameters<typeof summaryOf>[2] = { num_steps: 2, metrics: ["general", "collapse"] };
const summarize = (before: Partial<StepEval>, ...after: Partial<StepEval>[]) =>
  summaryOf(
    { eval: { ...nothing, ...before } } as BaselineFile,
    after.map((one) => ({ eval: { ...nothing, ...one } }) as StepLine),
    config,
  );

describe("summaryOf", () => {
  it.each([
    ["the baseline's is 0", summarize(general(0), general(1)), "the baseline's general score is 0"],
    [
      "the baseline's is unknown",
      summarize(general(null), general(1)),
      "the baseline's general score is not known",
    ],
    ["no step has one", summarize(general(1), general(null)), "no general score is known after a step"],
    ["no step is finished", summarize(general(1)), "no step is finished"],
    [
      "general is not requested",
      summaryOf({ eval: nothing } as BaselineFile, [], { ...config, metrics: ["collapse"] }),
      "general is not among the metrics",
    ],
  ])("gives the reason for a null capability_ratio if %s", (_, summary, capability_ratio) => {
    expect(summary).toMatchObject({ capability_ratio: null, unknown: { capability_ratio } });
  });

  it("distinguishes no alert from collapse that was not assessed", () => {
    const measured = { collapse: { ...noSigns, self_rouge_l: 0.2 } };
    const assessed = summarize({}, measured);
    expect(assessed).toMatchObject({ collapse_alerts: [], unknown: noSigns.unknown });
    expect(assessed.unknown).not.toHaveProperty("collapse_alerts");
    expect(summarize({}, { collapse: noSigns })).toMatchObject({
      collapse_alerts: null,
      unknown: { collapse_alerts: "no sign is known", ...noSigns.unknown },
    });
    // The baseline is not assessed: it is what later measurements are compared with.
    expect(summarize(measured, {})).toMatchObject({
      collapse_alerts: null,
      unknown: { collapse_alerts: "no finished step is one of collapse_steps" },
    });
    expect(
      summarize({}, measured, { collapse: { ...noSigns, own_drift: 3, alerts: ["own_drift"] } }),
    ).toMatchObject({
      collapse_alerts: ["own_drift"],
      verdict: "collapsed",
    });
  });
});
