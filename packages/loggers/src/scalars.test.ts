import { exampleSnapshot } from "@periodic-eval/testing";
import { expect, it } from "vitest";
import { snapshotScalars, trainScalars } from "./scalars.ts";

const metric = (value: number | null) => ({ ...exampleSnapshot().metrics["accuracy"]!, value });

it("uses the capability names of existing dashboards", () => {
  const metrics = { accuracy: metric(0.75), "accuracy/doctor": metric(0.5), gold_margin: metric(-0.2) };
  const snapshot = exampleSnapshot({ step: 20, metrics, accuracy: 0.75, correct: 3, total: 4 });
  expect(snapshotScalars(snapshot)).toEqual({
    "periodic_eval/arc_c_accuracy": 0.75,
    "periodic_eval/arc_c_accuracy/doctor": 0.5,
    "periodic_eval/arc_c_correct": 3,
    "periodic_eval/arc_c_total": 4,
    "periodic_eval/gold_margin": -0.2,
    "periodic_eval/train_pct": 20,
  });
});

it("names alignment and custom evaluations", () => {
  const metrics = { aligned: metric(81.5), coherent: metric(90), misaligned_rate: metric(null) };
  const alignment = exampleSnapshot({ evaluation: "alignment", id: "alignment", metrics });
  // An ungraded metric is unknown, not 0.
  expect(snapshotScalars(alignment)).toEqual({
    "periodic_align/aligned": 81.5,
    "periodic_align/coherent": 90,
    "periodic_align/train_pct": 0,
  });
  const custom = exampleSnapshot({ evaluation: "toxicity", id: "toxicity", metrics: { rate: metric(0.1) } });
  expect(snapshotScalars({ ...custom, pct: null })).toEqual({ "periodic_toxicity/rate": 0.1 });
});

it("names leakage by persona, including the source, and renames a persona called rate", () => {
  const metrics = { leakage_rate: metric(0.25), "leakage_rate/rate": metric(0.25), source_rate: metric(1) };
  const leakage_rates = { villain: 1, rate: 0.25, nobody: null };
  const snapshot = exampleSnapshot({ evaluation: "leakage", id: "leakage", metrics, leakage_rates });
  expect(snapshotScalars(snapshot)).toEqual({
    "periodic_leak/leakage_villain": 1,
    "periodic_leak/leakage_rate": 0.25,
    "periodic_leak/leakage_rate_": 0.25,
    "periodic_leak/source_rate": 1,
    "periodic_leak/train_pct": 0,
  });
});

it("separates two callbacks of one evaluation", () => {
  const snapshot = exampleSnapshot({ id: "without" });
  expect(Object.keys(snapshotScalars(snapshot))).toEqual([
    "periodic_eval/without/arc_c_accuracy",
    "periodic_eval/without/train_pct",
  ]);
});

it.each(["grading", "skipped", "failed"] as const)("returns no scalars for a %s snapshot", (status) => {
  expect(snapshotScalars(exampleSnapshot({ status, accuracy: 0, correct: 0, total: 0 }))).toEqual({});
});

it("separates validation from training", () => {
  expect(trainScalars({ loss: Number.NaN, "rewards/chosen": 1, eval_loss: 2 })).toEqual({
    "train/loss": Number.NaN,
    "train/rewards/chosen": 1,
    "eval/loss": 2,
  });
});
