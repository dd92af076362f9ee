import { expect, it } from "vitest";
import { openVerifiers } from "./open-verifiers.ts";

// A file of its own: what is loaded once does not load again. mathjs draws as it loads, but for what core has loaded before.
it("checking an expression beside training draws none of its numbers from Math.random", async () => {
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
