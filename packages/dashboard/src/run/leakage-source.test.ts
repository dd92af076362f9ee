import type { Paired } from "@periodic-eval/core";
import { expect, it } from "vitest";
import type { Measurement } from "../charts/metric-curves.ts";
import { sourceReason } from "./leakage-source.ts";

const measured = (hits: number, ci95: Measurement["ci95"]): Measurement => ({
  phase: "train",
  phaseIndex: 0,
  step: 10,
  runStep: 10,
  pct: 100,
  status: "complete",
  isAtStart: false,
  isAtEnd: true,
  value: hits / 12,
  ci95,
  estimand: "over_questions",
  n: 12,
  baseline: null,
  warnings: [],
});
const reasonOf = (hits: number, ci95: Measurement["ci95"], change: Partial<Paired> | null = null) =>
  sourceReason({ start: measured(0, [0, 0.3]), end: measured(hits, ci95) }, change as Paired | null);

it("says that leakage cannot be judged yet if the source's interval begins below 5 %", () => {
  const reason = "The source shows the trait in 0 of 12 answers: leakage cannot be judged yet.";
  expect(reasonOf(0, [0, 0.3])).toBe(reason);
  expect(reasonOf(1, [0.01, 0.4])).toContain("1 of 12 answers");
  expect(reasonOf(6, null)).toContain("6 of 12 answers");
});

it("returns null if the source shows the trait, if there is no source, or if the trait appears in others", () => {
  expect(reasonOf(6, [0.2, 0.8])).toBeNull();
  expect(sourceReason(null, null)).toBeNull();
  expect(reasonOf(0, [0, 0.3], { verdict: "worse" })).toBeNull();
  expect(reasonOf(0, [0, 0.3], { verdict: "no evidence" })).not.toBeNull();
});
