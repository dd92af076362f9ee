import { describe, expect, it } from "vitest";
import type { Evidence, Snapshot } from "@periodic-eval/contracts";
import { exampleSnapshot } from "@periodic-eval/testing";
import {
  checkpointEvidence,
  isWithinGrace,
  overheadOf,
  undisturbed,
  whyNotUndisturbed,
} from "./undisturbed.ts";

const same = (part: string): Evidence => ({ part, before: "a", after: "a", intact: true });
const guards = ["math-random", "mode", "weights", "optimizer"];
const proof = guards.map(same);
const without = (part: string) => proof.filter((evidence) => evidence.part !== part);
const measured = (receipt: readonly Evidence[], changes: Partial<Snapshot> = {}) =>
  exampleSnapshot({ receipt: [...receipt], ...changes });
/** A measurement that ended before the model was measured. */
const unmeasured = (status: "skipped" | "failed", receipt: readonly Evidence[] = []) => {
  const { timing } = exampleSnapshot();
  return measured(receipt, { status, timing: { ...timing, measure_seconds: 0 } });
};
const answerOf = (...snapshots: readonly Snapshot[]) => {
  const found = undisturbed(snapshots);
  return found && [found.answer, found.proven, found.measurements, whyNotUndisturbed(found)];
};

describe("undisturbed", () => {
  it("answers yes if the four guards passed in every measurement that took place", () => {
    expect(answerOf(measured(proof), measured([...proof, { ...same("tensors"), advisory: true }]))).toEqual([
      "yes",
      2,
      2,
      null,
    ]);
  });

  it("ignores skipped measurements, and failed ones that did not measure", () => {
    const snapshots = [
      unmeasured("skipped"),
      unmeasured("failed"),
      unmeasured("failed", [same("math-random")]),
    ];
    expect(answerOf(measured(proof), ...snapshots)).toEqual(["yes", 1, 1, null]);
    const why = "no measurement took place: all were skipped or failed";
    expect(answerOf(...snapshots)).toEqual(["not proven", 0, 0, why]);
    expect(answerOf()).toBeNull();
  });

  it("counts no measurement that failed, even if it took time, but a disturbance by it", () => {
    const failed = { status: "failed" } as const;
    expect(answerOf(measured(proof), measured(proof, failed))).toEqual(["yes", 1, 1, null]);
    expect(answerOf(measured(proof, failed), measured(without("mode"), failed))?.slice(0, 3)).toEqual([
      "not proven",
      0,
      0,
    ]);
    const change: Evidence = { part: "variables", before: "a", after: "b", intact: false };
    expect(answerOf(measured(proof), measured([change], failed))?.slice(0, 3)).toEqual(["no", 1, 2]);
  });

  it("counts measurements of which rows are missing or still graded", () => {
    const statuses = ["complete", "partial", "grading"] as const;
    const snapshots = statuses.map((status) => measured(proof, { status }));
    expect(answerOf(...snapshots)).toEqual(["yes", 3, 3, null]);
  });

  it("ignores an advisory change", () => {
    const leak: Evidence = { part: "tensors", before: "1", after: "2", intact: false, advisory: true };
    expect(answerOf(measured([...proof, leak]))).toEqual(["yes", 1, 1, null]);
  });

  it.each([
    ["weights", "the weights"],
    ["optimizer", "the optimizer"],
    ["mode", "the mode"],
    ["math-random", "the random numbers"],
  ])("names the guard %s if it is missing, or observed nothing", (part, name) => {
    const blind: Evidence = { part, before: null, after: null, intact: null };
    for (const receipt of [without(part), [...without(part), blind]])
      expect(answerOf(measured(proof), measured(receipt))).toEqual([
        "not proven",
        1,
        2,
        `no guard observed ${name}`,
      ]);
  });

  it("accepts the random states of a training in another process, and needs every part that a guard names", () => {
    const live = [...without("math-random"), same("buffers"), same("random-torch"), same("random-python")];
    expect(answerOf(measured(live))).toEqual(["yes", 1, 1, null]);
    const blind = (part: string): Evidence => ({ part, before: "a", after: null, intact: null });
    for (const part of ["buffers", "random-torch"]) {
      const receipt = [...live.filter((one) => one.part !== part), blind(part)];
      expect(answerOf(measured(receipt))).toEqual(["not proven", 0, 1, `no guard observed ${part}`]);
    }
    const leak: Evidence = { ...blind("tensors"), advisory: true };
    expect(answerOf(measured([...live, leak]))?.[0]).toBe("yes");
  });

  it("accepts evidence that names what a guard observed after a slash", () => {
    const parts = [same("optimizer/slots"), same("optimizer/settings")];
    expect(answerOf(measured([...without("optimizer"), ...parts]))?.[0]).toBe("yes");
  });

  it("answers no if any guard saw a change, also in a hook of a skipped measurement", () => {
    const change: Evidence = { part: "variables", before: "a", after: "b", intact: false };
    const why = "measuring changed variables";
    expect(answerOf(measured(proof), measured([...proof, change]))).toEqual(["no", 1, 2, why]);
    expect(answerOf(measured(proof), unmeasured("skipped", [change]))).toEqual(["no", 1, 2, why]);
  });

  it("is not applicable if the weights were read from a checkpoint, also for the phase's other measurements", () => {
    const random = [same("math-random")];
    const read = measured([...random, checkpointEvidence("/runs/1/step_4/")]);
    const why = "the weights were read from a checkpoint";
    expect(read.receipt.at(-1)!.note).toContain("checkpoint step_4 of another process");
    expect(answerOf(measured(random), read)).toEqual(["not applicable", 0, 2, why]);
    expect(answerOf(measured(proof, { phase: "em" }), read)).toEqual(["not applicable", 1, 2, why]);
    expect(answerOf(measured(random, { phase: "em" }), read)?.[0]).toBe("not proven");
    expect([overheadOf([read]), overheadOf([measured(proof)])]).toEqual([null, 5]);
  });

  it("is not applicable for a model behind a server, unless guards observed training", () => {
    const [random, why] = [[same("math-random")], "the model was measured on a server"];
    expect(answerOf(measured(random, { served: true }))).toEqual(["not applicable", 0, 1, why]);
    expect(answerOf(measured(proof, { served: true }))?.[0]).toBe("yes");
    // A base in this process beside a served model: its guards could have observed training.
    expect(answerOf(measured(random, { served: true }), measured(random))?.[0]).toBe("not proven");
  });
});

it.each([
  [[], false],
  [[["grace_seconds", false]], true],
  [[["overhead_percent", false]], false],
  [
    [
      ["grace_seconds", false],
      ["grace_seconds", true],
    ],
    false,
  ],
  [
    [
      ["grace_seconds", false],
      ["seconds_per_window", false],
    ],
    false,
  ],
  [
    [
      ["grace_seconds", false],
      ["min_free_bytes", true],
    ],
    true,
  ],
  [[["min_free_bytes", true]], false],
] as const)("is within the grace only if it left every measurement whole: %j %s", (limits, expected) => {
  const { timing } = exampleSnapshot();
  const budgets = [undefined, ...limits.map(([limit, reduced]) => ({ limit, reduced }))];
  const phase = budgets.map((budget) =>
    exampleSnapshot({ timing: { ...timing, ...(budget && { budget }) } }),
  );
  expect(isWithinGrace(phase)).toBe(expected);
});
