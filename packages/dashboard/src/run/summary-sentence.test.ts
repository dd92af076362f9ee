import type { Paired } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import type { Measurement } from "../charts/metric-curves.ts";
import type { MetricSummary } from "./phase-summary.ts";
import { summarySentence } from "./summary-sentence.ts";

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
    "Accuracy (capability) fell from 89.0 % to 62.0 % during em (−27.0 points [−36.9, −16.6]; worse at 1.0 %); first evidence at step 320 of em (run step 1120).",
  ],
  [
    "no evidence",
    { change: paired({ verdict: "no evidence", delta: -0.06, ci95: [-0.129, -0.001] }), firstEvidence: null },
    "Accuracy (capability) did not change measurably during em (from 89.0 % to 62.0 %; tested at 1.0 %; ±11.7 points detectable).",
  ],
  [
    "evidence that the end does not show",
    { change: paired({ verdict: "no evidence", minimal_detectable_change: null }) },
    "Accuracy (capability) did not change measurably during em (from 89.0 % to 62.0 %; tested at 1.0 %; the detectable change is unknown). There was evidence of a change (worse) at step 320 of em (run step 1120), but not at step 800.",
  ],
  [
    "an exploratory change in nats that is neither good nor bad",
    {
      unit: "nats",
      metric: "gold_margin",
      change: paired({ delta: 1.5, ci95: null, verdict: "changed", alpha: null, exploratory: true }),
      start: at(0, -0.5),
      end: at(600, 1),
      firstEvidence: null,
    },
    "Gold margin (capability) rose from −0.50 nats to 1.00 nats between steps 0 and 600 of em (+1.50 nats; changed at 5.0 %, exploratory); first evidence at step 600 of em (run step 1400).",
  ],
  [
    "a change over pairs against the direction of the values",
    { isOverPairs: true, start: at(0, 0.6) },
    "Accuracy (capability) fell over the items that both measurements observed, during em (−27.0 points [−36.9, −16.6] over 100 paired items; worse at 1.0 %); over all items, it went from 60.0 % to 62.0 %; first evidence at step 320 of em (run step 1120).",
  ],
  [
    "another baseline",
    { against: "coupling step 0" },
    "Accuracy (capability) was 62.0 % at step 800 of em, lower than at coupling step 0 (−27.0 points [−36.9, −16.6] over 100 paired items; worse at 1.0 %); first evidence at step 320 of em (run step 1120).",
  ],
  [
    "a failed end",
    { end: at(800, null, { status: "failed" }), change: null },
    "Accuracy (capability) has no value at step 800 of em: the measurement is failed. At step 0 it was 89.0 %. First evidence of a change (worse) at step 320 of em (run step 1120).",
  ],
  [
    "a single measurement",
    { start: at(0, 0.89), end: at(0, 0.89), isSingle: true, change: null, firstEvidence: null },
    "Accuracy (capability) was 89.0 % at step 0 of em, its only measurement in this phase.",
  ],
  [
    "no pairs",
    { change: paired({ verdict: null, delta: null, n_pairs: 0, alpha: null }), firstEvidence: null },
    "Accuracy (capability) was 89.0 % at step 0 and 62.0 % at step 800 of em. The difference was not tested: no item was observed in both measurements.",
  ],
])("describes %s", (_, more, sentence) => {
  expect(summarySentence(summary(more), "em")).toBe(sentence);
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
      const text = summarySentence(summary(one), "em");
      const tested = end.value !== null && change !== null ? change.verdict : null;
      expect(text).toMatch(/^Accuracy \(capability\) .*\.$/);
      expect(text).not.toMatch(/undefined|null|NaN|false|\s\s|Infinity/);
      expect(/measurably/.test(text)).toBe(tested === "no evidence");
      expect(/first evidence/.test(text)).toBe(tested !== null && tested !== "no evidence");
      expect(/\b(rose|higher)\b/.test(text)).toBe(/first evidence/.test(text) && change!.delta! > 0);
      expect(/\b(fell|lower)\b/.test(text)).toBe(/first evidence/.test(text) && change!.delta! < 0);
      for (const word of ["better", "worse", "changed"]) expect(text.includes(word)).toBe(tested === word);
      expect(text.includes("exploratory")).toBe(tested !== null && change!.exploratory);
      expect(text.includes("at 1.3 %")).toBe(tested !== null && !change!.exploratory);
      expect(text.includes("(partial)")).toBe(end.status === "partial");
      expect(/has no value at step 800/.test(text)).toBe(end.value === null);
      if (tested !== null && against !== null) expect(text).toContain("coupling step 0");
    }
  });
});
