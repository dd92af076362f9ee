import { fakeModel } from "@periodic-eval/testing";
import { expect, it } from "vitest";
import type { AnyFamily } from "../families/family.ts";
import { rolloutEvaluation } from "../families/rollout.ts";
import { taskRegistry } from "./own-evaluations.ts";

const documents = ["a", "b", "c"].map((id) => ({ id }));
const lengths = rolloutEvaluation({
  name: "lengths",
  documents,
  prompt: ({ id }) => id,
  maxNewTokens: 4,
  score: (_, text) => text.length,
});

it("reduces `length` and `evaluate` of a custom evaluation to its first items", async () => {
  const first = taskRegistry({ lengths })["lengths"]!.open({ data: "", limit: 2 }) as AnyFamily;
  expect([await lengths.length(), await first.length()]).toEqual([3, 2]);
  const { evaluate } = first;
  expect(await evaluate(fakeModel(), { reduce: "none" })).toHaveLength(2);
});
