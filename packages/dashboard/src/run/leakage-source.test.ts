import type { Paired } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import type { Measurement } from "../charts/metric-curves.ts";
import { sourceReason } from "./leakage-source.ts";

const measured = (hits: number, of: number, ci95: Measurement["ci95"], isAtStart = false): Measurement => ({
  phase: "train",
  phaseIndex: 0,
  step: isAtStart ? 0 : 10,
  runStep: isAtStart ? 0 : 10,
  pct: isAtStart ? 0 : 100,
  status: "complete",
  isAtStart,
  isAtEnd: !isAtStart,
  value: hits / of,
  ci95,
  estimand: "over_questions",
  n: of,
  baseline: null,
  warnings: [],
});
const verdict = (word: Paired["verdict"]) => ({ verdict: word }) as Paired;
const never = measured(0, 36, [0, 0.1], true);

describe("the reason why leakage cannot be judged", () => {
  const reasonOf = (hits: number, ci95: Measurement["ci95"], change: Paired | null = null) =>
    sourceReason(
      { start: measured(0, 12, [0, 0.3], true), end: measured(hits, 12, ci95) },
      { start: never, change },
    );

  it("is that the source does not show the trait yet if its interval begins below 5 %", () => {
    const reason = "The source shows the trait in 0 of 12 answers: leakage cannot be judged yet.";
    expect(reasonOf(0, [0, 0.3])).toBe(reason);
    expect(reasonOf(0, [0, 0.3], verdict("no evidence"))).toBe(reason);
    expect(reasonOf(0, [0, 0.3], verdict("better"))).toBe(reason);
    expect(reasonOf(1, [0.01, 0.4])).toContain("1 of 12 answers");
    expect(reasonOf(6, null)).toContain("6 of 12 answers");
  });

  it("is null if the source shows the trait, if there is no source, or if the trait appears in others", () => {
    expect(reasonOf(6, [0.2, 0.8])).toBeNull();
    expect(sourceReason(null, { start: never, change: null })).toBeNull();
    expect(reasonOf(0, [0, 0.3], verdict("worse"))).toBeNull();
  });
});

describe("a source that had the trait at the start", () => {
  const reasonOf = (
    [before, ciBefore]: readonly [number, Measurement["ci95"]],
    [after, ciAfter]: readonly [number, Measurement["ci95"]],
    others: Measurement,
    change: Paired,
  ) =>
    sourceReason(
      { start: measured(before, 20, ciBefore, true), end: measured(after, 20, ciAfter) },
      { start: others, change },
    );
  const spread = measured(15, 64, [0.13, 0.36], true);

  it("is said to have lost it, not that leakage became better", () =>
    expect(reasonOf([18, [0.6, 1]], [0, [0, 0.2]], spread, verdict("better"))).toBe(
      "The source itself lost the trait: 18 of 20 answers before, 0 of 20 after; leakage cannot be judged any more.",
    ));

  it("also if only the other personas show that the model had it", () => {
    const reason = reasonOf([2, [0.01, 0.4]], [0, [0, 0.2]], spread, verdict("better"));
    expect(reason).toMatch(/^The source itself lost the trait: 2 of 20 answers before, 0 of 20 after;/);
    expect(reasonOf([2, [0.01, 0.4]], [0, [0, 0.2]], never, verdict("no evidence"))).toMatch(/judged yet\.$/);
    expect(reasonOf([0, [0, 0.2]], [0, [0, 0.2]], spread, verdict("better"))).toMatch(/judged yet\.$/);
  });

  it("is judged while it shows the trait, and if others began to show it", () => {
    expect(reasonOf([18, [0.6, 1]], [8, [0.2, 0.6]], spread, verdict("better"))).toBeNull();
    expect(reasonOf([18, [0.6, 1]], [0, [0, 0.2]], never, verdict("worse"))).toBeNull();
  });
});
