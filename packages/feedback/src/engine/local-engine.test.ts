import { expect, it } from "vitest";
import { traceOf } from "./local-engine.ts";

it("returns the tokens of an answer, returns none for an empty answer, and throws if ids or tokenNats are missing", () => {
  expect(traceOf({ ids: [4, 2], tokenNats: [-1, -0.5] })).toEqual({ ids: [4, 2], nats: [-1, -0.5] });
  expect(traceOf({ ids: [], tokenNats: [] })).toEqual({ ids: [], nats: [] });
  const missing = (field: string) =>
    `sampled answers: got an answer without ${field}, expected the ids of the sampled tokens`;
  expect(() => traceOf({ ids: null, tokenNats: [-1] })).toThrow(missing("ids"));
  expect(() => traceOf({ ids: [4], tokenNats: null })).toThrow(missing("tokenNats"));
});
