import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { openVerifiers } from "./open-verifiers.ts";

const built = new URL("../../../dist/bundled/mathjs-number.js", import.meta.url);

// In a separate file, because a module loads once: mathjs draws random numbers while it loads, unless core has loaded it before.
it("checks an expression without drawing from the `Math.random` of training", async () => {
  const draws = await drawsDuring(async () => {
    const verifier = { name: "numeric", args: {} };
    const grader = await openVerifiers("").open({ id: "t", answer: 0.25, metadata: {}, verifier });
    const requests = [{ question: "half of a half", answer: "1/4" }];
    const verdicts = await grader.grade(requests, { signal: new AbortController().signal });
    expect(verdicts).toEqual([{ status: "graded", scores: { reward: 1 }, raw: null }]);
  });
  expect(draws).toBe(0);
});

it.skipIf(!existsSync(built))("loads the bundled mathjs without drawing either", async () => {
  expect(await drawsDuring(() => import(/* @vite-ignore */ built.href))).toBe(0);
});

/** Returns how often `run` draws from `Math.random`. */
async function drawsDuring(run: () => Promise<unknown>): Promise<number> {
  const { random } = Math;
  let draws = 0;
  Math.random = () => {
    draws += 1;
    return random();
  };
  try {
    await run();
  } finally {
    Math.random = random;
  }
  return draws;
}
