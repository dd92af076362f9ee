import { expect, it } from "vitest";
import type { AnyEvaluation } from "@periodic-eval/contracts";
import { defineEvaluation } from "../../evaluations/kit/define.ts";
import { fakeModel } from "@periodic-eval/testing";
import { measureRows } from "./measure-rows.ts";

it("returns more rows than a function call takes arguments", async () => {
  const items = Array.from({ length: 150_000 }, (_, at) => ({ id: String(at) }));
  const evaluation = defineEvaluation({
    name: "many",
    version: "1",
    needs: [],
    items: () => items,
    measure: async (_model, some) => some.map(({ id }) => ({ id })),
    metrics: () => ({}),
  }) as AnyEvaluation;
  const prepared = { model: "", items, itemsHash: "", target: fakeModel() };
  const context = { seed: "0", signal: new AbortController().signal, progress: () => undefined };
  expect((await measureRows(evaluation, prepared, context)).length).toBe(150_000);
});
