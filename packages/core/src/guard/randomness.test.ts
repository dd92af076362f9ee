import { describe, expect, test } from "vitest";
import { guardConformance } from "../testing/guard-conformance.ts";
import { mathRandomGuard, streamGuard, withSeededRandom } from "./randomness.ts";
import type { Entered } from "./types.ts";

const enter = async (seed: string): Promise<Entered> => mathRandomGuard().enter({ seed });
const native = Math.random;
const draws = (count: number) => Array.from({ length: count }, () => Math.random());

test("Math.random is a stream of the seed while entered, and itself afterwards", async () => {
  const first = await enter("a");
  const numbers = draws(3);
  expect(await first.leave()).toEqual({
    part: "math-random",
    before: "training's own",
    after: "training's own",
    intact: true,
    note: "served 3 draws from a seeded stream",
  });
  expect(Math.random).toBe(native);

  const again = await enter("a");
  expect(draws(3)).toEqual(numbers);
  await again.leave();
  const other = await enter("b");
  expect(draws(3)).not.toEqual(numbers);
  await other.leave();
});

test("no draws are told as such", async () => {
  const guard = await enter("a");
  expect((await guard.leave()).note).toBe("no draws");
});

test("work with a seeded stream gives training's own back however it ends", async () => {
  const fails = () => {
    throw new Error("no memory");
  };
  expect(withSeededRandom("a", () => draws(2))).toEqual(withSeededRandom("a", () => draws(2)));
  expect(() => withSeededRandom("a", fails)).toThrow("no memory");
  expect(Math.random).toBe(native);
  const waiting = withSeededRandom("a", async () => {
    await Promise.resolve();
    return draws(2);
  });
  expect(Math.random).not.toBe(native);
  expect(await waiting).toEqual(withSeededRandom("a", () => draws(2)));
  await expect(withSeededRandom("a", async () => fails())).rejects.toThrow("no memory");
  expect(Math.random).toBe(native);
});

test("two that overlap may leave in any order", async () => {
  const alone = await enter("b");
  const [ofB] = draws(1);
  await alone.leave();

  const a = await enter("a");
  const b = await enter("b");
  await a.leave();
  expect(Math.random()).toBe(ofB);
  await b.leave();
  expect(Math.random).toBe(native);
});

test("a stream of training that was drawn from is seen", async () => {
  let drawn = 0;
  const guard = streamGuard("shuffle", () => `${drawn} draws`);
  const quiet = await guard.enter({ seed: "" });
  expect(await quiet.leave()).toEqual({ part: "shuffle", before: "0 draws", after: "0 draws", intact: true });
  const disturbed = await guard.enter({ seed: "" });
  drawn += 1;
  expect(await disturbed.leave()).toEqual({
    part: "shuffle",
    before: "0 draws",
    after: "1 draws",
    intact: false,
  });
});

describe("conformance", () => {
  for (const check of guardConformance(() => mathRandomGuard())) test(`math-random ${check.name}`, check.run);
  let drawn = 0;
  const make = () => streamGuard("shuffle", () => `${drawn} draws`);
  for (const check of guardConformance(make, { disturb: () => void drawn++ }))
    test(`stream ${check.name}`, check.run);
});
