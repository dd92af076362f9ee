import { measure, type EvaluableModel } from "@periodic-eval/core";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import type { CollapseRow } from "./collapse-rows.ts";
import {
  collapseEvaluation,
  collapseReference,
  collapseAlerts,
  collapsePresets,
  thresholdsOf,
} from "./collapse.ts";

const probes = { text: "a fixed text", prompts: ["1", "2", "3", "4", "5", "6", "7", "8"] };
const sampling = { maxNewTokens: 12 };
const run = async (model: EvaluableModel, options: Parameters<typeof collapseEvaluation>[0] = {}) => {
  const { snapshot, rows } = await measure(collapseEvaluation({ probes, sampling, ...options }), model);
  const values = Object.fromEntries(
    Object.entries(snapshot.metrics).map(([name, { value }]) => [name, value]),
  );
  return {
    values,
    alerts: snapshot["alerts"],
    unknown: snapshot["unknown"],
    rows: rows as readonly CollapseRow[],
  };
};

/** Returns a model that gives every prompt the same answer and every token a log p of `nats`. */
const frozen = (nats: number, base?: EvaluableModel) =>
  fakeModel({
    reply: () => "the same again",
    logLikelihood: (_, continuation) => nats * continuation.length,
    ...(base !== undefined && { base }),
  });

describe("collapseEvaluation", () => {
  for (const check of evaluationConformance(() => ({
    evaluation: collapseEvaluation({ probes, sampling }),
    model: fakeModel({ base: fakeModel({ weights: () => "base" }) }),
  })))
    it(check.name, check.run);

  it("reports no change for a model that equals its baseline", async () => {
    const baseline = await run(fakeModel());
    expect(baseline.unknown).toMatchObject({ entropy_ratio: expect.stringContaining("no baseline") });
    expect(baseline.values).toMatchObject({ entropy_ratio: null, own_drift: null, baseline_drift: null });
    const again = await run(fakeModel(), { reference: collapseReference(baseline.rows) });
    // The same seed draws the same answers here.
    expect(again.values).toMatchObject({ entropy_ratio: 1, own_drift: 0, baseline_drift: 0 });
    expect(again.values["self_rouge_l"]).toBeLessThan(0.2);
    expect(again.alerts).toEqual([]);
    expect(again.unknown).toEqual({});
  });

  it("uses the model without its adapter as the baseline", async () => {
    const { values, alerts } = await run(frozen(-0.5, fakeModel({ weights: () => "base" })));
    // The fake base model has a vocabulary of 261 tokens and gives about −6 nats per token; this model gives −0.5.
    expect(values["own_drift"]).toBeGreaterThan(3);
    expect(values["baseline_drift"]).toBeGreaterThan(3);
    expect(values["self_rouge_l"]).toBe(1);
    expect(alerts).toEqual(["self_rouge_l", "own_drift", "baseline_drift"]);
  });

  it("detects forgetting on the baseline's answers", async () => {
    const reference = {
      entropyNats: 5,
      answers: Object.fromEntries(
        probes.prompts.map((_, at) => [`probe_${at}`, [{ text: "four", nats: -2, tokens: 4 }]]),
      ),
    };
    const { values, alerts } = await run(frozen(-3), { reference });
    // −3 nats per token by the model, −0.5 by the baseline.
    expect(values["baseline_drift"]).toBeCloseTo(-2.5, 12);
    expect(alerts).toContain("baseline_drift");
  });

  it("returns null with a reason for metrics that the engine cannot compute", async () => {
    const { generate, identity, contextLength } = fakeModel();
    const { values, unknown, alerts } = await run({ generate, identity, contextLength });
    expect(values).toMatchObject({
      entropy_nats: null,
      entropy_ratio: null,
      own_drift: null,
      baseline_drift: null,
    });
    expect(values["self_rouge_l"]).toBeLessThan(0.2);
    expect(unknown).toEqual({
      entropy_nats: "the engine does not show the distribution of the next token",
      entropy_ratio: "there is no baseline: neither a reference nor a model without its adapter",
      own_drift: "the engine scores no given text",
      baseline_drift: "there is no baseline: neither a reference nor a model without its adapter",
    });
    expect(alerts).toEqual([]);
  });

  it("returns null for the entropy if the engine reports only log-probs of chosen tokens", async () => {
    const { values, unknown } = await run(fakeModel({ nextToken: () => -1 }));
    expect(values["entropy_nats"]).toBeNull();
    expect(unknown).toMatchObject({
      entropy_nats: "the engine tells log-probs of chosen tokens and no entropy",
    });
  });

  it("returns null drift and full similarity for answers without words", async () => {
    const silent = fakeModel({ reply: () => "", base: fakeModel({ reply: () => "" }) });
    const { values, unknown, alerts } = await run(silent);
    expect(values).toMatchObject({ own_drift: null, baseline_drift: null, self_rouge_l: 1 });
    expect(unknown).toMatchObject({ own_drift: "no answer has a word" });
    expect(alerts).toEqual(["self_rouge_l"]);
  });

  it("throws if the model's log p is NaN", async () => {
    await expect(run(fakeModel({ logLikelihood: () => Number.NaN }))).rejects.toThrow("NaN");
  });

  it.each([
    [{ samples: 3 }, "collapse options.samples"],
    [{ probes: { text: "a", prompts: ["1"] } }, "at least 8 prompts"],
    [{ preset: "strict" as never }, "collapse options.preset"],
    [{ preset: { entropy_ratio: 1 } as never }, "collapse options.preset"],
  ])("rejects %j", (options, message) => {
    expect(() => collapseEvaluation(options)).toThrow(message);
  });
});

describe("collapseAlerts", () => {
  const signs = { entropy_nats: 3, entropy_ratio: 0.6, self_rouge_l: 0.85, own_drift: 2, baseline_drift: -2 };

  it("reports values beyond the claas thresholds, but not values equal to them", () => {
    expect(collapseAlerts(signs, collapsePresets.claas)).toEqual([]);
    const beyond = {
      entropy_nats: 3,
      entropy_ratio: 0.59,
      self_rouge_l: 0.86,
      own_drift: 2.01,
      baseline_drift: -2.01,
    };
    expect(collapseAlerts(beyond, thresholdsOf("claas"))).toEqual([
      "entropy_ratio",
      "self_rouge_l",
      "own_drift",
      "baseline_drift",
    ]);
  });

  it("returns no alert for unknown values", () => {
    const unknown = {
      entropy_nats: null,
      entropy_ratio: null,
      self_rouge_l: null,
      own_drift: null,
      baseline_drift: null,
    };
    expect(collapseAlerts(unknown, collapsePresets.claas)).toEqual([]);
  });
});
