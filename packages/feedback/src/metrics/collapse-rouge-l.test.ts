import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rougeL, selfRougeL } from "./collapse-rows.ts";

describe("rougeL", () => {
  // Google's rouge-score 0.1.2: rouge_scorer.RougeScorer(["rougeL"]).score(a, b)["rougeL"].fmeasure
  it.each([
    ["the cat sat on the mat", "the cat lay on the mat", 0.8333333333333334],
    ["police killed the gunman", "police kill the gunman", 0.75],
    ["police killed the gunman", "the gunman kill police", 0.5],
    ["a b c d e", "b d", 0.5714285714285715],
    ["It's 3.50, isn't it?", "it is 3.50", 0.5454545454545454],
    ["snake_case and kebab-case", "snake case and kebab case", 1],
    ["one", "two", 0],
    ["", "two", 0],
    ["!?", "two", 0],
    ["The fox found a bag of gold.", "A fox found gold and gave it back.", 0.4],
  ])("scores %j and %j as %f", (first, second, value) => {
    expect(rougeL(first, second)).toBeCloseTo(value, 12);
  });

  it("returns 1 for identical strings, even if they contain no words", () => {
    expect(rougeL("", "")).toBe(1);
    expect(rougeL("…", "…")).toBe(1);
  });

  it("is symmetric and equals the F1 of the longest common subsequence", () => {
    const text = fc
      .array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 8 })
      .map((words) => words.join(" "));
    /** Returns the length of the longest common subsequence, by brute force. */
    const longest = (a: readonly string[], b: readonly string[]): number => {
      if (a.length === 0 || b.length === 0) return 0;
      const at = b.indexOf(a[0]!);
      return Math.max(longest(a.slice(1), b), at < 0 ? 0 : 1 + longest(a.slice(1), b.slice(at + 1)));
    };
    fc.assert(
      fc.property(text, text, (first, second) => {
        const [a, b] = [first, second].map((one) => one.split(" ").filter((word) => word !== "")) as [
          string[],
          string[],
        ];
        const expected =
          first === second ? 1 : a.length * b.length === 0 ? 0 : (2 * longest(a, b)) / (a.length + b.length);
        expect(rougeL(first, second)).toBeCloseTo(expected, 12);
        expect(rougeL(second, first)).toBe(rougeL(first, second));
      }),
    );
  });
});

it("selfRougeL returns the mean over pairs, and null for fewer than two answers", () => {
  // Pairs: (a, a) 1, (a, b) 0, (a, b) 0.
  expect(selfRougeL(["a", "a", "b"])).toBeCloseTo(1 / 3, 12);
  expect(selfRougeL(["a", "a", "a", "a"])).toBe(1);
  expect(selfRougeL(["a"])).toBeNull();
  expect(selfRougeL([])).toBeNull();
});
