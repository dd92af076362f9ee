import { expect, it } from "vitest";
import { traceOf } from "./local-engine.ts";

it("returns the tokens of an answer, none for an empty one, and names missing fields", () => {
  expect(traceOf({ ids: [4, 2], tokenNats: [-1, -0.5] })).toEqual({ ids: [4, 2], nats: [-1, -0.5] });
  expect(traceOf({ ids: [], tokenNats: [] })).toEqual({ ids: [], nats: [] });
  const refused = (what: string) =>
    `sampled answers: got an answer without ${what}, expected the ids of the drawn tokens`;
  expect(() => traceOf({ ids: null, tokenNats: [-1] })).toThrow(refused("ids"));
  expect(() => traceOf({ ids: [4], tokenNats: null })).toThrow(refused("tokenNats"));
});
