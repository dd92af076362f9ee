import { expect, it } from "vitest";
import type { Grader } from "@periodic-eval/contracts";
import { readVerdicts } from "./read-verdicts.ts";

const grader: Grader = { name: "mine", fingerprint: "1", grade: async () => [] };
const graded = { status: "graded", scores: { reward: 1 }, raw: "yes" };

it("returns copies of verdicts, with their model and cost", () => {
  const given = { ...graded, model: "gpt", scores: { reward: 1 } };
  const [verdict] = readVerdicts(grader, [given], 1);
  given.scores.reward = 0;
  expect(verdict).toEqual({ ...graded, model: "gpt" });
});

it.each([
  ["null", null, "the grader returned null, which is not a verdict"],
  ["a missing element", undefined, "the grader returned undefined, which is not a verdict"],
  ["an unknown status", { status: "ok" }, 'the grader returned {"status":"ok"}, which is not a verdict'],
  ["scores that are null", { status: "graded", scores: null }, /which is not a verdict$/],
  ["scores without a number", { ...graded, scores: { reward: "1" } }, /which is not a verdict$/],
  ["an unknown status of a score", { ...graded, statuses: { reward: "odd" } }, /which is not a verdict$/],
])("returns an error for %s, and the other verdicts", (_, broken, raw) => {
  const verdicts = readVerdicts(grader, [broken, graded], 2);
  expect(verdicts).toEqual([
    { status: "error", raw: typeof raw === "string" ? raw : expect.stringMatching(raw) },
    graded,
  ]);
});

it("leaves out scores and spending that are not numbers, which no sum and no comparison can use", () => {
  const spent = { calls: 1, cached: 0, inputTokens: 2, outputTokens: 3, cost: null };
  const [known, unknown] = readVerdicts(
    grader,
    [
      { ...graded, scores: { reward: 1, note: "good", other: NaN }, spent },
      { ...graded, spent: { calls: 1, cost: "0.1" } },
    ],
    2,
  );
  expect([known, unknown]).toEqual([{ ...graded, spent }, graded]);
});

it("quotes a raw output that is not a string, and reads a missing one as null", () => {
  const verdicts = readVerdicts(grader, [{ ...graded, raw: { a: 1 } }, { status: "refusal" }], 2);
  expect(verdicts.map(({ raw }) => raw)).toEqual(['{"a":1}', null]);
});

it.each([
  [[graded], 'judge "mine": got 1 verdicts, expected 2, one per answer'],
  [undefined, 'judge "mine": got undefined, expected 2 verdicts, one per answer'],
  [{ length: 2 }, 'judge "mine": got {"length":2}, expected 2 verdicts, one per answer'],
])("throws for a wrong number of verdicts, and for anything but an array", (returned, message) => {
  expect(() => readVerdicts(grader, returned, 2)).toThrow(message);
});
