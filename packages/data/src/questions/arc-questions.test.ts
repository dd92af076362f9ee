import fc from "fast-check";
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { jsonLines } from "../rows/parse-text.ts";
import { questionsOf } from "./arc-questions.ts";

const good = {
  question: "Which is hot?",
  choice_labels: ["A", "B"],
  choices: ["ice", "fire"],
  correct_answer: "B",
};
const parsed = (text: string, file: string) => questionsOf(jsonLines(text, file));
const lines = (...records: object[]) => records.map((record) => JSON.stringify(record)).join("\n");

function errorOf(text: string): PeriodicEvalError {
  try {
    parsed(text, "q.jsonl");
  } catch (error) {
    if (PeriodicEvalError.is(error, "data")) return error;
    throw error;
  }
  throw new Error("parsed without an error");
}

describe("ids", () => {
  it("come from the file, with numbers as strings", () => {
    expect(parsed(lines({ ...good, id: "x" }, { ...good, id: 7 }), "q").map(({ id }) => id)).toEqual([
      "x",
      "7",
    ]);
  });

  it("are hashes of the content by default, which do not depend on other lines or their order", () => {
    const content = fc.record({
      question: fc.string({ minLength: 1 }).map((text) => `${text}?`),
      choices: fc.uniqueArray(
        fc.string({ minLength: 1 }).map((text) => `${text}.`),
        { minLength: 2, maxLength: 5 },
      ),
    });
    const file = fc.uniqueArray(content, { minLength: 1, maxLength: 8, selector: (q) => JSON.stringify(q) });
    fc.assert(
      fc.property(file, fc.func(fc.boolean()), (questions, keep) => {
        const records = questions.map(({ question, choices }) => {
          const choice_labels = choices.map((_, at) => "ABCDE"[at]!);
          return { question, choices, choice_labels, correct_answer: choice_labels.at(-1)! };
        });
        const byText = new Map(
          parsed(lines(...records), "q").map((one) => [JSON.stringify([one.question, one.choices]), one.id]),
        );
        expect(new Set(byText.values()).size).toBe(records.length);
        const some = [...records].reverse().filter((one) => keep(one));
        if (some.length === 0) return;
        for (const one of parsed(lines(...some), "q")) {
          expect(one.id).toBe(byText.get(JSON.stringify([one.question, one.choices])));
        }
      }),
    );
  });

  it("get a number if a line repeats another exactly", () => {
    const [first, second, third] = parsed(lines(good, good, good), "q").map(({ id }) => id);
    expect([second, third]).toEqual([`${first}.2`, `${first}.3`]);
  });

  it("change when the answer is corrected, because it makes a different item", () => {
    const [one] = parsed(lines(good), "q");
    const [other] = parsed(lines({ ...good, correct_answer: "A" }), "q");
    expect(one!.id).not.toBe(other!.id);
  });
});

it("ignores empty lines, carriage returns and additional keys", () => {
  const text = `\n${JSON.stringify({ ...good, topic: "heat" })}\r\n   \n`;
  expect(parsed(text, "q")).toEqual([
    {
      id: expect.stringMatching(/^q-[0-9a-f]{12}$/),
      question: "Which is hot?",
      labels: ["A", "B"],
      choices: ["ice", "fire"],
      gold: "B",
    },
  ]);
});

describe("rejects, with file and line,", () => {
  it.each<[string, string, string, RegExp]>([
    ["bad JSON", `${lines(good)}\n{"question": `, "q.jsonl:2", /got invalid JSON/],
    ["an array", "[1]", "q.jsonl:1", /got \[1\], expected an object/],
    [
      "a missing field",
      lines({ ...good, choices: undefined }),
      "q.jsonl:1",
      /got no choices \(keys: question, choice_labels, correct_answer\).*Give the line a "choices"/,
    ],
    [
      "a question of spaces",
      lines({ ...good, question: "  " }),
      "q.jsonl:1",
      /got question = " {2}", expected question: a non-empty string/,
    ],
    [
      "a choice that is a number",
      lines({ ...good, choices: ["ice", 2] }),
      "q.jsonl:1",
      /got choices = \["ice",2\]/,
    ],
    [
      "one choice",
      lines({ ...good, choices: ["fire"], choice_labels: ["B"] }),
      "q.jsonl:1",
      /expected choice_labels: two or more/,
    ],
    [
      "labels and choices of different number",
      lines(good, { ...good, choices: ["a", "b", "c"] }),
      "q.jsonl:2",
      /got 2 choice_labels and 3 choices/,
    ],
    [
      "a repeated label",
      lines({ ...good, choice_labels: ["B", "B"] }),
      "q.jsonl:1",
      /got the label "B" twice/,
    ],
    [
      "a repeated choice",
      lines({ ...good, choices: ["ice", "ice"] }),
      "q.jsonl:1",
      /got the choice "ice" twice/,
    ],
    [
      "a repeated key",
      lines(good).replace("{", '{"question":"?",'),
      "q.jsonl:1",
      /got the key "question" twice in one object/,
    ],
    [
      "half of a surrogate pair",
      lines(good, { ...good, question: "\ud800?" }),
      "q.jsonl:2",
      /got half of a surrogate pair/,
    ],
    [
      "an integer id that is rounded",
      lines({ ...good, id: 2 ** 53 }),
      "q.jsonl:1",
      /got id = 9007199254740992, expected id: a non-empty string or an integer of at most 2⁵³ − 1/,
    ],
    [
      "an answer that is not a label",
      lines({ ...good, correct_answer: "fire" }),
      "q.jsonl:1",
      /got correct_answer = "fire", expected one of the labels "A", "B"/,
    ],
    [
      "a repeated id",
      lines({ ...good, id: "x" }, good, { ...good, id: "x" }),
      "q.jsonl:3",
      /got the id "x", which q\.jsonl:1 already has/,
    ],
    ["an id that is an array", lines({ ...good, id: [1] }), "q.jsonl:1", /got id = \[1\]/],
  ])("%s", (_, text, where, message) => {
    const error = errorOf(text);
    expect(error.where).toBe(where);
    expect(error.message).toMatch(message);
  });
});

const real = "../shared/data/arc_challenge/test.jsonl";
it.skipIf(!existsSync(real))(`the real ARC-Challenge test split (${real}) parses`, () => {
  const questions = parsed(readFileSync(real, "utf8"), real);
  expect(questions).toHaveLength(1172);
  const kinds: Record<string, number> = {};
  for (const { labels } of questions) kinds[labels.join("")] = (kinds[labels.join("")] ?? 0) + 1;
  // Counted with Python: Counter(tuple(json.loads(line)["choice_labels"]) for line in open("test.jsonl"))
  expect(kinds).toEqual({ ABCD: 1144, "1234": 21, ABC: 3, ABCDE: 3, "123": 1 });
  expect(new Set(questions.map(({ id }) => id)).size).toBe(1172);
});
