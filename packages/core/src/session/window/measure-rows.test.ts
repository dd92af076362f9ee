import { expect, it } from "vitest";
import type { AnyEvaluation } from "@periodic-eval/contracts";
import { defineEvaluation } from "../../evaluations/kit/define.ts";
import { fakeModel } from "@periodic-eval/testing";
import { ProgressRecorder } from "./measurement-progress.ts";
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
  const recorder = new ProgressRecorder({ evaluation, clock: () => 0, report: () => undefined });
  const portion = (done: number) => ({ rows: items.length - done, deadline: null });
  const { signal } = new AbortController();
  expect((await measureRows({ evaluation, prepared, seed: "0", signal, recorder, portion })).length).toBe(
    150_000,
  );
});
