import type { TrainResult } from "@periodic-eval/trainers";
import { expect, it } from "vitest";
import { checkUndisturbed, interrupted } from "./fine-tune.ts";

const result: TrainResult = {
  phase: "em",
  steps: 12,
  maxSteps: 80,
  epochs: 0.8,
  finalLoss: 1,
  stopReason: null,
  brokenReceipt: null,
  resumedFrom: null,
  skippedUpdates: 0,
  checkpoint: "runs/1/checkpoints/em/step_8",
  best: null,
  conditionStop: null,
  lastClean: null,
  isRestored: false,
  restored: null,
  badRows: [],
};

it("throws when measuring disturbed the last phase and says how to resume", () => {
  expect(() => checkUndisturbed([], "runs/1", "the same command with --run-dir runs/1")).not.toThrow();
  expect(() => checkUndisturbed([result], "runs/1", "the same command with --run-dir runs/1")).not.toThrow();
  const disturbed = { ...result, brokenReceipt: 'guard "weights" saw a change' };
  expect(() =>
    checkUndisturbed([result, disturbed], "runs/1", "the same command with --run-dir runs/1"),
  ).toThrow(
    '[periodic-eval] runs/1 phase em step 12: got guard "weights" saw a change, expected measurements that do not change training. ' +
      "Fix or remove the callback or evaluation that changes training, then run the same command with --run-dir runs/1 to resume " +
      "from runs/1/checkpoints/em/step_8.",
  );
});

it.each([
  [result, "Interrupted in em at step 12 of 80", "Run the command to resume from step 8."],
  [
    { ...result, steps: 0, checkpoint: null },
    "Interrupted in em at step 0 of 80",
    "Run the command to begin em.",
  ],
  [
    { ...result, checkpoint: null },
    "Interrupted in em at step 12 of 80",
    "Run the command to begin em again.",
  ],
  [undefined, "Interrupted", "Run the command to start over."],
])("says after an interrupt where training continues", (last, got, fix) => {
  expect(interrupted(last, "runs/1", "the command")).toMatchObject({
    code: "aborted",
    where: "runs/1",
    got,
    fix,
    detail: { kind: "interrupted" },
  });
});
