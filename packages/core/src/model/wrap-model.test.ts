import { fakeModel } from "@periodic-eval/testing";
import { expect, it } from "vitest";
import type { EvaluableModel } from "@periodic-eval/contracts";
import { wrapModel } from "./wrap-model.ts";

it("keeps every property of the model and of its base", () => {
  const { calls: _, ...fake } = fakeModel();
  const model = {
    ...fake,
    layerCount: 2,
    isServed: true,
    concurrentCalls: 3,
    toleranceNats: 0.25,
    check: async () => undefined,
    hiddenStates: async () => [],
    base: { ...fake, toleranceNats: 0.5 },
  } satisfies Required<EvaluableModel>;
  const wrapped = wrapModel(model, (ask) => ask);
  expect(Object.keys(wrapped).sort()).toEqual(Object.keys(model).sort());
  expect(wrapped).toMatchObject({ isServed: true, concurrentCalls: 3, toleranceNats: 0.25 });
  expect(wrapped.base!.toleranceNats).toBe(0.5);
});
