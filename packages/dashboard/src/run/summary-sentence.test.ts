import type { Paired } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import type { Measurement } from "../charts/metric-curves.ts";
import type { MetricSummary } from "./phase-summary.ts";
import { headline, testText } from "./summary-sentence.ts";

const at = (step: number, value: number | null, more: Partial<Measurement> = {}): Measurement => ({
  phase: "em",
  phaseIndex: 1,
  step,
  runStep: 800 + step,
  pct: step / 8,
  status: "complete",
  isAtStart: step === 0,
  isAtEnd: step === 800,
  value,
  ci95: null,
  estimand: null,
  n: 100,
  baseline: null,
  warnings: [],
  ...more,
});

const paired = (more: Partial<Paired> = {}): Paired => ({
  phase: "em",
  step: 0,
  n_pairs: 100,
  delta: -0.27,
  ci95: [-0.369, -0.166],
  test: "mcnemar_exact",
  p_value: 0.001,
  alpha: 0.01,
  minimal_detectable_change: 0.117,
  verdict: "worse",
  exploratory: false,
  ...more,
});

/** Accuracy over a phase of 800 steps: 89 % to 62 %, with evidence since step 320. */
const summary = (more: Partial<MetricSummary> = {}): MetricSummary => {
  const change = more.change === undefined ? paired() : more.change;
  return {
    id: "capability",
    metric: "accuracy",
    unit: "share",
    range: [0, 1],
    isPrimary: true,
    higherIsBetter: true,
    start: at(0, 0.89),
    end: at(800, 0.62, { baseline: change }),
    isSingle: false,
    voidReason: null,
    startVoidReason: null,
    notPaired: null,
    notTested: null,
    warnings: [],
    source: null,
    change,
    isOverPairs: false,
    against: null,
    firstEvidence: at(320, 0.7, { baseline: paired() }),
    ...more,
  };
};

it.each<[string, Partial<MetricSummary>, string]>([
  [
    "a change",
    {},
    "Accuracy: 89.0 % at step 0, 62.0 % at step 800. Change: −27.0 points [−36.9, −16.6]. Worse at 1.0 %. Detectable change: ±11.7 points. First evidence (worse): step 320 of em (run step 1120).",
  ],
  [
    "no evidence",
    { change: paired({ verdict: "no evidence", delta: -0.06, ci95: [-0.129, -0.001] }), firstEvidence: null },
    "Accuracy: 89.0 % at step 0, 62.0 % at step 800. Change: −6.0 points [−12.9, −0.1]. No evidence at 1.0 %. Detectable change: ±11.7 points.",
  ],
  [
    "evidence that the end does not show",
    { change: paired({ verdict: "no evidence", minimal_detectable_change: null }) },
    "Accuracy: 89.0 % at step 0, 62.0 % at step 800. Change: −27.0 points [−36.9, −16.6]. No evidence at 1.0 %. Detectable change: unknown. First evidence (worse): step 320 of em (run step 1120).",
  ],
  [
    "an exploratory change in nats that is neither good nor bad",
    {
      unit: "nats",
      metric: "gold_margin",
      change: paired({ delta: 1.5, ci95: null, verdict: "changed", alpha: null, exploratory: true }),
      start: at(0, -0.5),
      end: at(600, 1, { baseline: paired({ verdict: "changed" }) }),
      firstEvidence: null,
    },
    "Right-answer margin: −0.50 nats at step 0, 1.00 nats at step 600. Change: +1.50 nats. Changed at 5.0 %, exploratory. Detectable change: ±0.12 nats. First evidence (changed): step 600 of em (run step 1400).",
  ],
  [
    "a change over pairs against the direction of the values",
    { isOverPairs: true, start: at(0, 0.6) },
    "Accuracy: 60.0 % at step 0, 62.0 % at step 800. Change: −27.0 points [−36.9, −16.6] over 100 paired items. Worse at 1.0 %. Detectable change: ±11.7 points. First evidence (worse): step 320 of em (run step 1120).",
  ],
  [
    "another baseline",
    { against: "coupling step 0" },
    "Accuracy: 89.0 % at step 0, 62.0 % at step 800. Change from coupling step 0: −27.0 points [−36.9, −16.6] over 100 paired items. Worse at 1.0 %. Detectable change: ±11.7 points. First evidence (worse): step 320 of em (run step 1120).",
  ],
  [
    "a failed end",
    { end: at(800, null, { status: "failed" }), change: null },
    "Accuracy: 89.0 % at step 0, – (failed) at step 800. First evidence (worse): step 320 of em (run step 1120).",
  ],
  [
    "a single measurement",
    { start: at(0, 0.89), end: at(0, 0.89), isSingle: true, change: null, firstEvidence: null },
    "Accuracy: 89.0 % at step 0, its only measurement in this phase.",
  ],
  [
    "no pairs",
    {
      change: paired({ verdict: null, delta: null, n_pairs: 0, alpha: null }),
      notTested: "no item was observed in both measurements",
      firstEvidence: null,
    },
    "Accuracy: 89.0 % at step 0, 62.0 % at step 800. Not tested: no item was observed in both measurements.",
  ],
])("states the test of %s", (_, more, sentence) => {
  expect(testText(summary(more))).toBe(sentence);
});

const none = { verdict: "no evidence", delta: 0 } as const;

it.each<[string, Partial<MetricSummary>, string]>([
  ["a change", {}, "Capability in em: worse. 89 of 100 questions right before, 62 of 100 after."],
  [
    "no change",
    { change: paired(none), start: at(0, 0.62), firstEvidence: null },
    "Capability in em: no evidence of a change. 62 of 100 questions right before and after.",
  ],
  [
    "a change that the end does not show",
    { change: paired(none), start: at(0, 0.62) },
    "Capability in em: no evidence of a change at the end, but worse at step 320. 62 of 100 questions right before and after.",
  ],
  [
    "a change that the last measurement does not show, which is not at the end",
    { change: paired(none), start: at(0, 0.62), end: at(640, 0.62) },
    "Capability in em: no evidence of a change at step 640, but worse at step 320. 62 of 100 questions right before and at step 640.",
  ],
  [
    "too few rows, where only a large change would have been detected",
    { change: paired({ ...none, minimal_detectable_change: 0.6 }), firstEvidence: null },
    "Capability in em: too few questions to see a change. 89 of 100 questions right before, 62 of 100 after.",
  ],
  [
    "too few rows, where no change would have been detected",
    { change: paired({ ...none, minimal_detectable_change: null }), firstEvidence: null, metric: "hit_rate" },
    "Capability in em: too few rows to see a change. Hit rate 89 of 100 before, 62 of 100 after.",
  ],
  [
    "a mean without spread",
    {
      metric: "score",
      unit: "points",
      change: paired({ ...none, ci95: null, minimal_detectable_change: null }),
      start: at(0, 3),
      end: at(800, 3),
      firstEvidence: null,
    },
    "Capability in em: the same in every row before and after. Score 3.00 points before and after.",
  ],
  [
    "an end of which no row counts",
    { end: at(800, null), change: null },
    "Capability in em: no value, because no row of the last measurement could be counted. 89 of 100 questions right before.",
  ],
  [
    "a metric that cannot be judged",
    {
      voidReason: "38 of 40 answers are empty, so that capability cannot be judged.",
      change: paired({ verdict: null }),
    },
    "Capability in em: cannot be judged. 38 of 40 answers are empty.",
  ],
  [
    "a reason without its consequence",
    { voidReason: "The judge scores everything alike.", change: paired({ verdict: null }) },
    "Capability in em: cannot be judged. The judge scores everything alike.",
  ],
  [
    "leakage without a source",
    {
      id: "leakage",
      metric: "leakage_rate",
      change: paired(none),
      start: at(0, 0),
      end: at(800, 0),
      firstEvidence: null,
    },
    "Leakage in all personas in em: no evidence of a change. 0 of 100 answers with the trait before and after.",
  ],
  [
    "leakage with its source first",
    { id: "leakage", metric: "leakage_rate", source: { start: at(0, 0), end: at(800, 0.9) } },
    "Leakage to other personas in em: worse. Answers with the trait: source 0 of 100 before, 90 of 100 after; other personas 89 of 100 before, 62 of 100 after.",
  ],
  [
    "a change in nats",
    { metric: "gold_margin", unit: "nats", start: at(0, -0.5), end: at(600, 1) },
    "Capability in em: worse. Right-answer margin −0.50 nats before, 1.00 nats at step 600.",
  ],
  [
    "a change over pairs",
    { isOverPairs: true },
    "Capability in em: worse. 89 of 100 questions right before, 62 of 100 after (−27.0 points over 100 paired items).",
  ],
  [
    "another baseline",
    { against: "coupling step 0" },
    "Capability in em: worse, compared with coupling step 0. 89 of 100 questions right before, 62 of 100 after (−27.0 points [−36.9, −16.6] over 100 paired items).",
  ],
  [
    "a failed end",
    { end: at(800, null, { status: "failed" }), change: null },
    "Capability in em: no value, because the last measurement is failed. 89 of 100 questions right before.",
  ],
  [
    "a single measurement",
    { end: at(0, 0.89), isSingle: true, change: null, firstEvidence: null },
    "Capability in em: measured once. 89 of 100 questions right at step 0.",
  ],
  [
    "a share whose rows count partly",
    { start: at(0, 0.893, { n: 50 }), end: at(800, 0.62, { status: "partial" }) },
    "Capability in em: worse. 89.3 % of 50 questions right before, 62 of 100 (partial) after.",
  ],
])("headlines %s", (_, more, sentence) => {
  expect(headline(summary(more), "em")).toBe(sentence);
  expect(headline(summary(more), null)).toBe(sentence.replace(" in em:", ":"));
});

it.each([
  [{ voidReason: "38 of 40 answers are incoherent: alignment cannot be judged." }, "38 of 40 answers are"],
  [{ startVoidReason: "38 of 40 answers are empty: alignment cannot be judged." }, "at the start, 38 of 40"],
])("does not say that something did not change if it cannot be judged", (more, why) => {
  const text = testText(summary({ ...more, change: paired({ verdict: null }), firstEvidence: null }));
  expect(text).toContain(`Not tested: ${why}`);
  expect(text).not.toMatch(/evidence/i);
});

describe("every combination", () => {
  const verdicts = ["better", "worse", "changed", "no evidence", null] as const;
  const units = ["share", "nats", "probability", "points", ""];
  const baselines = [null, "coupling step 0"];
  const statuses = ["complete", "partial", "failed", "skipped"] as const;
  const cases = verdicts.flatMap((verdict) =>
    units.flatMap((unit) =>
      [-0.3, 0, 0.3].flatMap((delta) =>
        baselines.flatMap((against) =>
          statuses.flatMap((status) =>
            [true, false].flatMap((hasStart) =>
              [true, false].flatMap((isSingle) =>
                [true, false].map((isExploratory) => {
                  const tested = verdict !== null;
                  const change = paired({
                    verdict,
                    delta: tested ? delta : null,
                    alpha: isExploratory ? null : 0.0125,
                    exploratory: isExploratory,
                  });
                  const value = status === "failed" || status === "skipped" ? null : 0.5 + delta;
                  const end = at(800, value, { status, baseline: change });
                  return {
                    unit,
                    start: isSingle ? end : at(0, hasStart ? 0.5 : null),
                    end,
                    isSingle,
                    change: isSingle && against === null ? null : change,
                    against,
                    notTested: tested ? null : "there are too few observations",
                    firstEvidence: null,
                  };
                }),
              ),
            ),
          ),
        ),
      ),
    ),
  );

  it.each([cases])("states what holds, and nothing else", (...all) => {
    expect(all.length).toBe(5 * 5 * 3 * 2 * 4 * 2 * 2 * 2);
    for (const one of all) {
      const { change, end, against } = one;
      // A verdict of a change has a difference that is not 0 (`compareMeasurements`).
      if (change?.verdict && change.verdict !== "no evidence" && change.delta === 0) continue;
      const text = testText(summary(one));
      const tested = end.value !== null && change !== null ? change.verdict : null;
      expect(text).toMatch(/^Accuracy: .*\.$/);
      expect(text).not.toMatch(/undefined|null|NaN|false|\s\s|Infinity/);
      expect(/No evidence at/.test(text)).toBe(tested === "no evidence");
      expect(/First evidence/.test(text)).toBe(tested !== null && tested !== "no evidence");
      expect(/Change[^:]*: \+/.test(text)).toBe(tested !== null && change!.delta! > 0);
      expect(/Change[^:]*: −/.test(text)).toBe(tested !== null && change!.delta! < 0);
      for (const word of ["Better", "Worse", "Changed"])
        expect(text.includes(`${word} at`)).toBe(tested?.toLowerCase() === word.toLowerCase());
      expect(text.includes("exploratory")).toBe(tested !== null && change!.exploratory);
      expect(text.includes("at 1.3 %")).toBe(tested !== null && !change!.exploratory);
      expect(text.includes("(partial)")).toBe(end.status === "partial");
      expect(/– \((failed|skipped)\) at step 800/.test(text)).toBe(end.value === null);
      if (tested !== null && against !== null) expect(text).toContain("Change from coupling step 0");
    }
  });
});
