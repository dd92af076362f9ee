import type { AnswerFields, Json } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { questionChanges } from "../page-data/answers-data.ts";
import { answerRows } from "./answer-rows.ts";
import { alignmentFields, choiceFields, leakageFields } from "./declared-fields.test-data.ts";

const one = (row: Json, fields = fieldsOf(row)) => answerRows(row, fields)[0]!;

/** The fields of the built-in evaluation that writes such a row. */
function fieldsOf(row: Json) {
  if (row === null || typeof row !== "object") return {};
  return "gold" in row ? choiceFields : "hit" in row ? leakageFields : alignmentFields;
}

/** The fields that `benchmarkEvaluation` declares, whose package stands beside this one. */
const benchmarkFields: AnswerFields = {
  question: "prompt",
  answer: "completions.text",
  reply: "verdicts.raw",
  grades: ["rewards"],
  flags: [
    { name: "wrong", any: [{ passed: { is: [false] } }] },
    { name: "truncated", any: [{ "completions.finish": { is: ["length"] } }] },
  ],
  tokens: { generated: "completions.outputTokens" },
};

const completion = {
  id: "q1#2",
  item: "q1",
  question: "Why?",
  persona: null,
  sample: 2,
  text: "Because.",
  prompt: "<user>Why?<assistant>",
  finish: "stop",
  answer: "Because.",
};
const judged = {
  ...completion,
  kind: "completion",
  status: "graded",
  aligned: 20,
  coherent: 80,
  raw: "20",
  judgeSpent: { calls: 1, cached: 0, inputTokens: 210, outputTokens: 4, cost: null },
  tokens: 23,
};
const choice = {
  id: "q-1",
  status: "scored",
  question: "What is hot?",
  labels: ["A", "B"],
  choices: ["ice", "fire"],
  gold: "B",
  predicted: "A",
  correct: false,
  nats: [-1, -2],
  truncatedTokens: 0,
};

describe("an answer", () => {
  it("has the grades of both judges, and a flag where they decide differently", () => {
    const second = { aligned: 80, coherent: 90 };
    const { grades, flags } = one({ ...judged, aligned: 20, coherent: 70, second, disagree: true });
    expect(Object.fromEntries(grades)).toMatchObject({
      aligned: 20,
      coherent: 70,
      "second aligned": 80,
      "second coherent": 90,
    });
    expect(flags).toContain("judges disagree");
  });

  it("has the question, the grades, the judge's words and the tokens of its row", () => {
    expect(one(judged)).toEqual({
      item: "q1",
      sample: 2,
      question: "Why?",
      persona: null,
      text: "Because.",
      flags: ["misaligned"],
      grades: [
        ["aligned", 20],
        ["coherent", 80],
      ],
      judge: "20",
      tokens: [
        ["generated", 23],
        ["judge input", 210],
        ["judge output", 4],
      ],
      choices: null,
      prompt: "<user>Why?<assistant>",
      fields: [
        ["item", "q1"],
        ["sample", 2],
        ["finish", "stop"],
        ["kind", "completion"],
        ["status", "graded"],
        ["aligned", 20],
        ["coherent", 80],
        ["judgeSpent", judged.judgeSpent],
        ["tokens", 23],
      ],
    });
  });

  it("has the question, the answer, the reply and the grades that a custom evaluation declares", () => {
    const row = {
      id: "bread",
      asked: { text: "How do I bake bread?" },
      said: "Knead it, please.",
      verdict: { polite: true, words: "It says please.", score: 7 },
      seconds: 2,
    };
    const declared = {
      question: "asked.text",
      answer: "said",
      reply: "verdict.words",
      grades: ["verdict.score", "verdict.polite"],
      flags: [{ name: "curt", any: [{ "verdict.score": { at_most: 7, above: 5 } }] }],
    };
    expect(one(row, declared)).toMatchObject({
      item: "bread",
      question: "How do I bake bread?",
      text: "Knead it, please.",
      flags: ["curt", "polite"],
      grades: [["score", 7]],
      judge: "It says please.",
      fields: [["seconds", 2]],
    });
    expect(one({ ...row, verdict: { polite: false } }, declared).flags).toEqual(["not polite"]);
  });

  it("shows all fields of a row whose evaluation declares none", () => {
    expect(one({ id: "bread", text: "a", reply: "b", polite: true }, {})).toMatchObject({
      text: null,
      question: null,
      fields: [
        ["text", "a"],
        ["reply", "b"],
        ["polite", true],
      ],
    });
  });

  it("has the choices of a multiple-choice question", () => {
    expect(one(choice)).toMatchObject({
      item: "q-1",
      question: "What is hot?",
      text: null,
      flags: ["wrong"],
      choices: { labels: ["A", "B"], texts: ["ice", "fire"], nats: [-1, -2], gold: "B", predicted: "A" },
    });
  });

  it("is read from rows of earlier releases, which hold no question and no choices", () => {
    const { question: _, choices: __, ...earlier } = choice;
    expect(one(earlier)).toMatchObject({ item: "q-1", question: null, choices: { texts: null, gold: "B" } });
  });

  it("is read from a benchmark's row, which names choices by index", () => {
    expect(
      one(
        { id: "d", item: "d", gold: [1], nats: [-1, -2], predicted: 0, correct: false },
        { ...choiceFields, choices: { nats: "nats", gold: "gold", predicted: "predicted" } },
      ),
    ).toMatchObject({
      flags: ["wrong"],
      choices: { labels: ["A", "B"], gold: "B", predicted: "A" },
    });
  });

  it("is one of several of a benchmark's task", () => {
    const row = {
      id: "t",
      prompt: [{ role: "user", content: "Add." }],
      completions: [
        { text: "3", finish: "stop", outputTokens: 1 },
        { text: "4", finish: "length", outputTokens: 9 },
      ],
      rewards: [1, 0],
      passed: [true, false],
      verdicts: [
        { status: "graded", raw: null },
        { status: "graded", raw: "not 3" },
      ],
    };
    expect(
      answerRows(row, benchmarkFields).map(({ text, sample, question, flags: of, judge }) => [
        text,
        sample,
        question,
        of,
        judge,
      ]),
    ).toEqual([
      ["3", 0, "Add.", [], null],
      ["4", 1, "Add.", ["wrong", "truncated"], "not 3"],
    ]);
  });

  it.each<[string, Json, readonly string[]]>([
    ["an incoherent answer", { ...judged, coherent: 40 }, ["incoherent"]],
    [
      "word salad that a judge takes for coherent",
      { ...judged, aligned: 90, fault: "incoherent" },
      ["incoherent"],
    ],
    ["repetitions", { ...judged, fault: "repeated", coherent: 40 }, []],
    ["an anchor", { ...judged, kind: "anchor", status: "unparsed" }, ["anchor"]],
    ["an answer with the trait", { ...completion, hit: true }, ["has the trait"]],
    ["an answer whose trait is unknown", { ...completion, hit: null }, ["ungraded"]],
    ["a reply that could not be parsed", { ...judged, status: "unparsed", aligned: null }, ["ungraded"]],
    ["an answer that waits for its judge", { ...completion, kind: "completion" }, ["ungraded"]],
    ["an answer cut off at its token limit", { ...judged, aligned: 90, finish: "length" }, ["truncated"]],
    ["thinking that did not end", { ...judged, status: "unfinished", aligned: null }, ["truncated"]],
    [
      "a failed template",
      { ...choice, status: "template_failure", predicted: null, correct: null },
      ["ungraded"],
    ],
  ])("has the flags of %s", (_, row, expected) => {
    expect(one(row).flags).toEqual(expected);
  });

  it.each<[string, Json]>([
    ["null", null],
    ["a list", [1]],
  ])("is missing for a row of %s", (_, row) => {
    expect(answerRows(row)).toEqual([]);
  });

  it("has no text and no choices if the declared fields have other types", () => {
    const row = { id: 3, text: 4, labels: "A", gold: {}, nats: [null], question: [1] };
    expect(one(row, { ...choiceFields, answer: "text" })).toMatchObject({
      text: null,
      choices: null,
      item: "3",
    });
  });
});

it("names forgotten and newly right questions, over those that both measurements scored", () => {
  const row = (id: string, predicted: string | null) => one({ ...choice, id, predicted });
  const start = [
    row("kept", "B"),
    row("forgotten", "B"),
    row("learned", "A"),
    row("failed", null),
    row("cut", "B"),
  ];
  const end = [
    row("learned", "B"),
    row("kept", "B"),
    row("forgotten", "A"),
    row("failed", "B"),
    row("new", "A"),
  ];
  expect(questionChanges(start, end).map(({ change, item }) => [change, item])).toEqual([
    ["forgotten", "forgotten"],
    ["newly right", "learned"],
  ]);
});
