import { describe, expect, test } from "vitest";
import { guardConformance } from "@periodic-eval/testing";
import { divertMathRandom, mathRandomGuard, streamGuard, withSeededRandom } from "./guards.ts";
import type { EnteredGuard } from "../../../contracts/src/guard.ts";

const enter = async (seed: string): Promise<EnteredGuard> => mathRandomGuard().enter({ seed });
const native = Math.random;
const draws = (count: number) => Array.from({ length: count }, () => Math.random());

test("replaces Math.random by a seeded stream while entered, and restores it", async () => {
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

test("reports a window without draws", async () => {
  const guard = await enter("a");
  expect((await guard.leave()).note).toBe("no draws");
});

test("restores Math.random after withSeededRandom whether the work returns or throws", async () => {
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

test("allows overlapping replacements to leave in any order", async () => {
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

test("detects a draw from the training's stream with streamGuard", async () => {
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

test("gives a separate stream to callers of divertMathRandom only, in windows and outside of them", async () => {
  let isApart = false;
  const apart = <T>(work: () => T): T => {
    isApart = true;
    try {
      return work();
    } finally {
      isApart = false;
    }
  };
  const counting = () => 0.25;
  Math.random = counting;
  try {
    const early = await enter("a");
    const streamOf = () => (isApart ? () => 0.75 : undefined);
    divertMathRandom(streamOf);
    expect(apart(Math.random)).toBe(0.75);
    const [ofA] = draws(1);
    expect((await early.leave()).note).toBe("served 1 draw from a seeded stream");
    expect(withSeededRandom("a", () => draws(1))).toEqual(
      withSeededRandom("a", () => (apart(Math.random), draws(1))),
    );
    expect([Math.random(), apart(Math.random), ofA !== 0.25]).toEqual([0.25, 0.75, true]);

    // The training replaced it in the meantime.
    Math.random = () => 0.5;
    expect(apart(Math.random)).toBe(0.5);
    divertMathRandom(streamOf);
    divertMathRandom(streamOf);
    expect([Math.random(), apart(Math.random)]).toEqual([0.5, 0.75]);
  } finally {
    Math.random = native;
  }
});

describe("conformance", () => {
  for (const check of guardConformance(() => mathRandomGuard())) test(`math-random ${check.name}`, check.run);
  let drawn = 0;
  const make = () => streamGuard("shuffle", () => `${drawn} draws`);
  for (const check of guardConformance(make, { disturb: () => void drawn++ }))
    test(`stream ${check.name}`, check.run);
});
