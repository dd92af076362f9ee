import { expect, it } from "vitest";
import { openVerifiers } from "./open-verifiers.ts";

// In a separate file, because a module loads once: mathjs draws random numbers while it loads, unless core has loaded it before.
it("checks an expression without drawing from the `Math.random` of training", async () => {
  const { random } = Math;
  let draws = 0;
  Math.random = () => {
    draws += 1;
    return random();
  };
  try {
    const verifier = { name: "numeric", args: {} };
    const grader = await openVerifiers("").open({ id: "t", answer: 0.25, metadata: {}, verifier });
    const requests = [{ question: "half of a half", answer: "1/4" }];
    const verdicts = await grader.grade(requests, { signal: new AbortController().signal });
    expect(verdicts).toEqual([{ status: "graded", scores: { reward: 1 }, raw: null }]);
  } finally {
    Math.random = random;
  }
  expect(draws).toBe(0);
});
