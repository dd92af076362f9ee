import { buildPeriodicEval } from "@periodic-eval/core";
import type { Hello } from "@periodic-eval/live";
import { expect, it } from "vitest";
import { microWorld } from "../../demo/micro-world.ts";
import { serverOf } from "./measure-on.ts";

const built = (block: Readonly<Record<string, unknown>>) =>
  buildPeriodicEval(
    { questions: microWorld("questions.jsonl"), ...block },
    { phase: "train", canMeasureOn: true },
  );
const hello = { model: { name: "base", adapter: "default" }, can_save: true } as Hello;
const on = { measure_on: { server: "http://127.0.0.1:8000", evaluations: ["capability"] } };

it("measures on no server without measure_on", async () => {
  expect(serverOf(await built({}), hello)).toBeNull();
});

it("names the evaluations that the server measures", async () => {
  expect(serverOf(await built(on), hello)).toMatchObject({ evaluations: ["capability"] });
});

it.each([
  ["a model without an adapter", { ...hello, model: { ...hello.model, adapter: null } }, on],
  ["a trainer that cannot save", { ...hello, can_save: false }, on],
  ["evaluations that are not measured", hello, { measure_on: { server: "http://127.0.0.1:8000" } }],
])("refuses %s before the first step", async (_, trainer, block) => {
  const session = await built(block);
  expect(() => serverOf(session, trainer)).toThrow(
    expect.objectContaining({ code: "config", where: "periodic_eval.measure_on", path: ["measure_on"] }),
  );
});
