import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { normalTail } from "./distributions.ts";
import { detectableSampled, permutationTest, type QuestionPair } from "./permutation.ts";

const values = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 3 });
const zerosAndOnes = fc.array(fc.nat(1), { minLength: 1, maxLength: 4 });
const questionsOf = (list: fc.Arbitrary<number[]>) =>
  fc.array(fc.record({ now: list, before: list }), { minLength: 1, maxLength: 3 });

describe("permutationTest", () => {
  it("equals Fisher's exact test for one question of zeros and ones", () => {
    // scipy 1.17.1: stats.fisher_exact([[6, 2], [2, 6]]).pvalue = stats.permutation_test(…, n_resamples=inf).pvalue
    const { p, value } = permutationTest(
      [{ now: [1, 1, 0, 1, 1, 1, 0, 1], before: [0, 0, 1, 0, 0, 0, 0, 1] }],
      "s",
    );
    expect(p).toBeCloseTo(0.13193473193473193, 12);
    expect(value).toBeCloseTo(0.5, 12);
  });

  it("counts arrangements of several questions with unequal counts", () => {
    // C(6,3) · C(5,2) · C(4,2) = 1,200 arrangements, of which 96 are as extreme (enumerated in Python).
    const { p } = permutationTest(
      [
        { now: [1, 1, 1], before: [0, 0, 1] },
        { now: [1, 1], before: [0, 1, 0] },
        { now: [0, 0], before: [0, 0] },
      ],
      "s",
    );
    expect(p).toBeCloseTo(96 / 1200, 12);
  });

  it("counts arrangements of real values", () => {
    // C(6,3) · C(4,2) = 120 arrangements, 12 as extreme (enumerated in Python).
    const questions = [
      { now: [1.5, 2.5, 0.5], before: [0.25, 0, 1] },
      { now: [3, 1], before: [0.5, 1.25] },
    ];
    expect(permutationTest(questions, "s").p).toBeCloseTo(12 / 120, 12);
  });

  it("equals a count of every arrangement, for zeros and ones and for real values", () => {
    fc.assert(
      fc.property(fc.oneof(questionsOf(zerosAndOnes), questionsOf(values)), (questions) => {
        expect(permutationTest(questions, "s").p).toBeCloseTo(byBruteForce(questions), 9);
      }),
    );
  });

  it("returns the difference of means for equal counts, and changes sign when the measurements are swapped", () => {
    const questions = [
      { now: [1, 2], before: [0, 0] },
      { now: [5, 3], before: [4, 1] },
    ];
    // Means 11/4 and 5/4.
    const turned = questions.map(({ now, before }) => ({ now: before, before: now }));
    expect(permutationTest(questions, "s").value).toBeCloseTo(1.5, 12);
    expect(permutationTest(turned, "s").value).toBeCloseTo(-1.5, 12);
    expect(permutationTest(turned, "s").p).toBe(permutationTest(questions, "s").p);
  });

  it("returns 0 when only the counts per question differ", () => {
    // Question 1 is all ones, question 2 all zeros; only their counts differ between the measurements.
    const { value, p } = permutationTest(
      [
        { now: [1, 1, 1], before: [1] },
        { now: [0], before: [0, 0, 0] },
      ],
      "s",
    );
    expect([value, p]).toEqual([0, 1]);
  });

  it("draws from too many arrangements, the same for the same seed, close to the normal tail", () => {
    // 20 questions of 5 + 5 distinct values: 252^20 arrangements.
    const questions = Array.from({ length: 20 }, (_, q) => ({
      now: Array.from({ length: 5 }, (_unused, i) => Math.sin(q * 10 + i) + 0.25),
      before: Array.from({ length: 5 }, (_unused, i) => Math.sin(q * 10 + i + 5)),
    }));
    const { p, value, stderr } = permutationTest(questions, "a");
    expect(permutationTest(questions, "a").p).toBe(p);
    expect(permutationTest(questions, "b").p).not.toBe(p);
    // The sum of 200 draws is nearly normal; the error of the draws is √(p(1−p)/10⁴) ≤ 0.005.
    expect(Math.abs(p! - 2 * normalTail(Math.abs(value! / stderr!)))).toBeLessThan(0.02);
  });

  it("enumerates the few arrangements of many completions against one", () => {
    // 401 arrangements: the one before may be any value; only 0 is as far from the mean as 0.
    const now = Array.from({ length: 400 }, (_, i) => 10 + (i % 7) / 10);
    expect(permutationTest([{ now, before: [0] }], "s").p).toBeCloseTo(1 / 401, 12);
  });

  it("never returns p = 0 from draws", () => {
    const questions = Array.from({ length: 30 }, (_, q) => ({
      now: [10 + q, 11 + q / 2, 12, 13],
      before: [0, 1 + q / 7, 2, 3],
    }));
    expect(permutationTest(questions, "s").p).toBe(1 / 10_001);
  });

  it("returns null without questions, and no interval when nothing varied", () => {
    expect(permutationTest([], "s")).toMatchObject({ value: null, stderr: null, ci95: null, p: null });
    expect(permutationTest([{ now: [1], before: [1, 1] }], "s")).toMatchObject({
      value: 0,
      stderr: null,
      ci95: null,
      p: 1,
    });
    expect(detectableSampled({ stderr: null, weight: 0, share: null }, 0.05)).toBeNull();
  });

  // docs/explanations/power.md simulates the test: of 40 answers, 20 % are detected in 59 of 100 phases; of 160, 5 % in 53, 10 % in 97.
  it.each([
    [5, 0.2, 0.3],
    [20, 0.05, 0.1],
    [100, 0.01, 0.02],
  ])(
    "detects a change from zeros only that a simulation detects with power 0.8: %i",
    (samples, low, high) => {
      const zeros = Array.from({ length: samples }, () => 0);
      const questions = Array.from({ length: 8 }, () => ({ now: zeros, before: zeros }));
      const detectable = detectableSampled(permutationTest(questions, "s"), 0.01)!;
      expect([detectable > low, detectable < high]).toEqual([true, true]);
    },
  );

  it("detects less with one hit more, never more", () => {
    const detectable = (hits: number) => {
      const now = Array.from({ length: 20 }, (_, i) => (i < hits ? 1 : 0));
      return detectableSampled(permutationTest([{ now, before: now.map(() => 0) }], "s"), 0.05)!;
    };
    expect(detectable(0)).toBeCloseTo(0.33, 2);
    for (let hits = 1; hits < 10; hits++) expect(detectable(hits)).toBeGreaterThan(detectable(hits - 1));
  });

  it("convolves many completions without overflow", () => {
    // 1,500 against 1,500: the binomials exceed the range of a double.
    const list = (hits: number) => Array.from({ length: 1500 }, (_, i) => (i < hits ? 1 : 0));
    const { p } = permutationTest([{ now: list(800), before: list(740) }], "s");
    // scipy 1.17.1: stats.fisher_exact([[800, 700], [740, 760]]).pvalue
    expect(p).toBeCloseTo(0.031133627478148084, 9);
  });
});

function byBruteForce(questions: readonly QuestionPair[]): number {
  const choices = questions.map(({ now, before }) => {
    const all = [...now, ...before];
    const mean = all.reduce((sum, value) => sum + value, 0) / all.length;
    const sums: number[] = [];
    for (let mask = 0; mask < 2 ** all.length; mask++) {
      const chosen = all.filter((_, i) => ((mask >> i) & 1) === 1);
      if (chosen.length === now.length) sums.push(chosen.reduce((sum, value) => sum + value - mean, 0));
    }
    const observed = now.reduce((sum, value) => sum + value - mean, 0);
    return { sums, observed };
  });
  const observed = choices.reduce((sum, choice) => sum + choice.observed, 0);
  const totals = choices.reduce<number[]>(
    (all, { sums }) => all.flatMap((one) => sums.map((sum) => one + sum)),
    [0],
  );
  return totals.filter((sum) => Math.abs(sum) >= Math.abs(observed) - 1e-9).length / totals.length;
}
