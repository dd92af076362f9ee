import { describe, expect, it } from "vitest";
import type { MeasurementWarning, Paired } from "@periodic-eval/contracts";
import { exampleSnapshot } from "@periodic-eval/testing";
import { addWarnings, isVoid, voidReason, warningsOf } from "./warnings.ts";

const warning = (changes: Partial<MeasurementWarning> = {}): MeasurementWarning => ({
  kind: "incoherent",
  metrics: ["leakage_rate"],
  count: 38,
  total: 40,
  void: true,
  message: "38 of 40 answers are incoherent: leakage cannot be judged.",
  ...changes,
});

const worse: Paired = {
  phase: "train",
  step: 0,
  n_pairs: 40,
  delta: 0.5,
  ci95: [0.2, 0.8],
  test: "permutation",
  p_value: 0.001,
  alpha: 0.05,
  minimal_detectable_change: 0.2,
  verdict: "worse",
  exploratory: false,
};

describe("warnings of a snapshot", () => {
  it("are empty in a snapshot without warnings, whose metrics can be judged", () => {
    const snapshot = exampleSnapshot();
    expect(snapshot.warnings).toEqual([]);
    expect(isVoid(snapshot, "accuracy")).toBe(false);
    expect(voidReason(snapshot, "accuracy")).toBeNull();
  });

  it("say once why a metric cannot be judged", () => {
    const undecided = warning({ kind: "undecided", message: "The conclusion depends on 38 of 40 answers." });
    expect(addWarnings(exampleSnapshot(), [warning(), undecided]).warnings).toEqual([warning()]);
    const slight = warning({ void: false });
    expect(addWarnings(exampleSnapshot(), [slight, undecided]).warnings).toEqual([slight, undecided]);
  });

  it("concern the metrics that they name and the groups of these", () => {
    const snapshot = exampleSnapshot({ warnings: [warning()] });
    expect(isVoid(snapshot, "leakage_rate")).toBe(true);
    expect(isVoid(snapshot, "leakage_rate/doctor")).toBe(true);
    expect(isVoid(snapshot, "leakage_rate_upper")).toBe(false);
    expect(voidReason(snapshot, "leakage_rate")).toBe(
      "38 of 40 answers are incoherent: leakage cannot be judged.",
    );
  });

  it("concern every metric if they name none", () => {
    const snapshot = exampleSnapshot({ warnings: [warning({ metrics: null, void: false })] });
    expect(warningsOf(snapshot, "accuracy")).toHaveLength(1);
    expect(isVoid(snapshot, "accuracy")).toBe(false);
  });

  it("remove the verdict of a void metric, and of no other", () => {
    const paired = { baseline: { leakage_rate: worse, source_rate: worse }, previous: null };
    const { warnings, paired: judged } = addWarnings(exampleSnapshot({ paired }), [warning()]);
    expect(warnings).toHaveLength(1);
    expect(judged.baseline!["leakage_rate"]).toEqual({ ...worse, verdict: null });
    expect(judged.baseline!["source_rate"]).toEqual(worse);
  });

  it("leave verdicts where nothing is void", () => {
    const paired = { baseline: { leakage_rate: worse }, previous: null };
    const { paired: judged } = addWarnings(exampleSnapshot({ paired }), [warning({ void: false })]);
    expect(judged).toEqual(paired);
  });
});
