import fc from "fast-check";
import { expect, test } from "vitest";
import { evaluationMode } from "./causal-lm.ts";

test("describes training, evaluation and the number of open entries", () => {
  const mode = evaluationMode();
  expect([mode.isOn(), mode.describe()]).toEqual([false, "training"]);
  const leaveOuter = mode.enter();
  expect([mode.isOn(), mode.describe()]).toEqual([true, "evaluation"]);
  const leaveInner = mode.enter();
  expect(mode.describe()).toBe("evaluation (entered 2 times)");
  leaveInner();
  expect(mode.describe()).toBe("evaluation");
  leaveOuter();
  expect(mode.describe()).toBe("training");
});

test("leaves later entries together with an earlier one", () => {
  const mode = evaluationMode();
  const leaveOuter = mode.enter();
  const leaveForgotten = mode.enter();
  leaveOuter();
  expect(mode.describe()).toBe("training");
  leaveForgotten();
  expect(mode.describe()).toBe("training");
});

test("keeps the outer entry when inner entries are left in any order", () => {
  fc.assert(
    fc.property(fc.array(fc.nat()), (choices) => {
      const mode = evaluationMode();
      const leave = mode.enter();
      const open: (() => void)[] = [];
      for (const choice of choices) {
        if (choice % 2 === 0) open.push(mode.enter());
        else open.splice(choice % Math.max(1, open.length), 1)[0]?.();
      }
      for (const one of open) one();
      expect(mode.describe()).toBe("evaluation");
      leave();
      expect(mode.isOn()).toBe(false);
    }),
  );
});
