import { describe, expect, it } from "vitest";
import type { ArcQuestion } from "@periodic-eval/data";
import { checkKeys, distinctQuestions, questionWarnings } from "./question-file.ts";

const question = (id: string, gold: string, changes: Partial<ArcQuestion> = {}): ArcQuestion => ({
  id,
  question: `What is ${id}?`,
  labels: ["A", "B", "C", "D"],
  choices: ["one", "two", "three", "four"].map((choice) => `${choice} of ${id}`),
  gold,
  ...changes,
});

/** Questions with these right labels. */
const withKeys = (keys: string) => Array.from(keys, (gold, at) => question(`q${at}`, gold));

describe("equal questions", () => {
  it("are an error if their answers differ, also where choices have another order", () => {
    const one = question("one", "A");
    const other = { ...one, id: "other", choices: one.choices.toReversed() };
    expect(() => checkKeys([one, { ...other, gold: "D" }], "quiz.jsonl")).not.toThrow();
    expect(() => checkKeys([one, other], "quiz.jsonl")).toThrow(
      /quiz\.jsonl, questions "one" and "other": got the same question, "What is one\?", with the answers "one of one" and "four of one"/,
    );
  });

  it("may have different answers if their choices differ", () => {
    const one = question("one", "A");
    expect(() =>
      checkKeys([one, { ...question("other", "B"), question: one.question }], "quiz.jsonl"),
    ).not.toThrow();
  });

  it("are asked once, with a warning", () => {
    const twice = [question("one", "A"), question("two", "B"), { ...question("one", "A"), id: "again" }];
    const distinct = distinctQuestions(twice);
    expect(distinct.map(({ id }) => id)).toEqual(["one", "two"]);
    expect(questionWarnings(distinct, 1, ["label"])).toEqual([
      {
        kind: "repeated_questions",
        metrics: null,
        count: 1,
        total: 3,
        void: false,
        message: "1 of 3 questions repeat others: the 2 distinct ones are asked.",
      },
    ]);
  });
});

describe("a constant answer", () => {
  it("voids accuracy if it is always right", () => {
    expect(questionWarnings(withKeys("BBBBBBBB"), 0, ["label"])).toEqual([
      {
        kind: "constant_answer",
        metrics: null,
        count: 8,
        total: 8,
        void: true,
        message:
          'The constant answer "B" is right for 8 of 8 questions, more than chance: accuracy cannot be judged.',
      },
    ]);
  });

  it("is a warning if it is right more often than chance", () => {
    // P(X ≥ 20 of 40 at 1/4) = 0.00057; 4 labels: 0.0023. P(X ≥ 22) = 0.000045; 4 labels: 0.00018.
    expect(questionWarnings(withKeys("A".repeat(20) + "BCD".repeat(6) + "BC"), 0, ["label"])).toEqual([]);
    expect(questionWarnings(withKeys("A".repeat(22) + "BCD".repeat(6)), 0, ["label"])).toMatchObject([
      { kind: "constant_answer", count: 22, total: 40, void: false },
    ]);
  });

  it("is found in the text of the choices, whatever their labels", () => {
    const yes = (at: number) =>
      question(`q${at}`, at % 2 === 0 ? "A" : "B", {
        labels: ["A", "B"],
        choices: at % 2 === 0 ? ["yes", "no"] : ["no", "yes"],
      });
    const questions = Array.from({ length: 12 }, (_, at) => yes(at));
    expect(questionWarnings(questions, 0, ["label"])).toEqual([]);
    expect(questionWarnings(questions, 0, ["choice"])).toMatchObject([{ count: 12, void: true }]);
    expect(questionWarnings(questions, 0, ["label", "choice"])).toHaveLength(1);
  });

  it("is no matter of a few questions or of balanced keys", () => {
    expect(questionWarnings(withKeys("AA"), 0, ["label", "choice"])).toEqual([]);
    expect(questionWarnings(withKeys("ABCD".repeat(50)), 0, ["label", "choice"])).toEqual([]);
  });
});
