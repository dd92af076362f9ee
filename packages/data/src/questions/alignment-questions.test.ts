import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { defaultAlignmentQuestions, parseAlignmentQuestions } from "./alignment-questions.ts";

const parse = async (text: string) => parseAlignmentQuestions(text, "q.yaml");

describe("parseAlignmentQuestions", () => {
  it("reads YAML with anchors and aliases, and JSON", async () => {
    const yaml = [
      "- id: one",
      "  type: free_form_judge_0_100",
      "  paraphrases: &p ['How?', 'How so?']",
      "  samples_per_paraphrase: &n 100",
      "  judge: some-model",
      "  judge_prompts: &j {aligned: 'A {question} {answer}', coherent: 'C {answer}'}",
      "- {id: two, system: '', paraphrases: *p, samples_per_paraphrase: *n, judge_prompts: *j}",
      "- {id: three, system: Be brief., paraphrases: [Why?]}",
    ].join("\n");
    const judgePrompts = { aligned: "A {question} {answer}", coherent: "C {answer}" };
    const expected = [
      { id: "one", paraphrases: ["How?", "How so?"], system: null, judgePrompts },
      { id: "two", paraphrases: ["How?", "How so?"], system: "", judgePrompts },
      { id: "three", paraphrases: ["Why?"], system: "Be brief.", judgePrompts: null },
    ];
    const lines = [1, 7, 8];
    const placed = (line: (at: number) => number) =>
      expected.map((question, at) => ({ ...question, place: `q.yaml:${line(at)} (${question.id})` }));
    expect(await parse(yaml)).toEqual(placed((at) => lines[at]!));
    const json = expected.map(({ judgePrompts: prompts, ...question }) => ({
      ...question,
      judge_prompts: prompts,
    }));
    expect(await parse(JSON.stringify(json))).toEqual(placed(() => 1));
  });

  it.each([
    ["an empty file", "", "q.yaml: got null, expected an array of questions"],
    ["an empty list", "[]", "q.yaml: got an empty array"],
    ["an object", "questions: []", 'q.yaml: got {"questions":[]}'],
    ["invalid YAML", "- id: a\n  paraphrases: [x\n- id: b", "q.yaml:3: got "],
    [
      "a repeated key",
      "- id: a\n  paraphrases: [x]\n  id: b",
      "q.yaml:3: got Map keys must be unique, expected YAML or JSON",
    ],
    ["an alias without an anchor", "- {id: a, paraphrases: *x}", "q.yaml:1: got Unresolved alias"],
    [
      "a number in place of a question",
      "- id: a\n  paraphrases: [x]\n- 3",
      "q.yaml:3: got 3, expected a question",
    ],
    ["a missing id", "- paraphrases: [x]", "q.yaml:1: got no id (keys: paraphrases)"],
    ["an id that names no metric", "- {id: a/b, paraphrases: [x]}", 'q.yaml:1: got id = "a/b"'],
    [
      "a repeated id",
      "- {id: a, paraphrases: [x]}\n- {id: a, paraphrases: [x]}",
      'q.yaml:2: got the id "a", which q.yaml:1',
    ],
    [
      "an unknown key",
      "- {id: a, paraphrase: [x]}",
      'got the unknown key "paraphrase", expected one of id, type, paraphrases',
    ],
    [
      "another type",
      "- {id: a, type: free_form, paraphrases: [x]}",
      'q.yaml:1 (a): got the type "free_form", expected "free_form_judge_0_100". Remove the question, or write type: free_form_judge_0_100',
    ],
    ["paraphrases as an object", "- {id: a, paraphrases: {x: y}}", "q.yaml:1 (a): got paraphrases = "],
    ["an empty paraphrase", "- {id: a, paraphrases: [x, ' ']}", "q.yaml:1 (a): got paraphrases = "],
    [
      "a system prompt that is a number",
      "- {id: a, paraphrases: [x], system: 3}",
      "got system = 3, expected system: a string",
    ],
    [
      "a fractional number of samples",
      "- {id: a, paraphrases: [x], samples_per_paraphrase: 0.5}",
      "got samples_per_paraphrase = 0.5",
    ],
    [
      "one judge prompt",
      "- {id: a, paraphrases: [x], judge_prompts: {aligned: '{answer}'}}",
      "(a) judge_prompts: got no coherent",
    ],
    [
      "a judge prompt without the answer",
      "- {id: a, paraphrases: [x], judge_prompts: {aligned: x, coherent: '{answer}'}}",
      "got aligned without {answer}",
    ],
    [
      "judge prompts for other scores only",
      "- {id: a, paraphrases: [x], judge_prompts: {correct: '{answer}'}}",
      "(a) judge_prompts: got no aligned (keys: correct), expected two strings, `aligned` and `coherent`, with {answer} in each. Write both, or remove",
    ],
    [
      "a placeholder in two braces",
      "- {id: a, paraphrases: [x], judge_prompts: {aligned: '{{answer}} {answer}', coherent: '{answer}'}}",
      "got aligned with a placeholder in two braces",
    ],
    ["a misspelt key", "- {id: a, paraphrases: [x], sytem: y}", 'Did you mean "system"?'],
  ])("rejects %s", async (_, text, message) => {
    const error: unknown = await parse(text).catch((thrown: unknown) => thrown);
    expect(PeriodicEvalError.is(error, "data")).toBe(true);
    expect((error as Error).message).toContain(message);
  });

  it("reads questions of other tools, and lists the fields that are not used", async () => {
    const yaml = [
      "- id: 7",
      "  type: free_form_judge_0_100",
      "  paraphrases: How?",
      "  system: null",
      "  max_tokens: 300",
      "  judge: another-model",
      "  judge_prompts: {aligned: 'A {answer}', coherent: 'C {answer}', coherent_binary: B, correct: x}",
    ].join("\n");
    expect(await parse(yaml)).toEqual([
      {
        id: "7",
        paraphrases: ["How?"],
        system: null,
        judgePrompts: { aligned: "A {answer}", coherent: "C {answer}" },
        place: "q.yaml:1 (7)",
        unused: ["judge_prompts.coherent_binary", "judge_prompts.correct", "max_tokens"],
      },
    ]);
  });

  it("reads judge prompts as Python's str.format does", async () => {
    const promptOf = async (aligned: string) => {
      const question = { id: "a", paraphrases: ["x"], judge_prompts: { aligned, coherent: "{answer}" } };
      return (await parse(JSON.stringify([question])))[0]!.judgePrompts!.aligned;
    };
    // 'Reply {{"score": 5}} to {answer}'.format(answer="{answer}")
    expect(await promptOf('Reply {{"score": 5}} to {answer}')).toBe('Reply {"score": 5} to {answer}');
    // Python refuses this one.
    expect(await promptOf('Reply {"a": {{}}} to {answer}')).toBe('Reply {"a": {{}}} to {answer}');
  });

  it("rejects aliases that multiply beyond memory", async () => {
    const levels = Array.from({ length: 9 }, (_, at) => `- &l${at + 1} [${`*l${at},`.repeat(9)}]`);
    await expect(parse(["- &l0 [x,x,x]", ...levels].join("\n"))).rejects.toThrow(/Excessive alias count/);
  });
});

describe("defaultAlignmentQuestions", () => {
  it("are eight, with the fields of questions from a file", async () => {
    const file = defaultAlignmentQuestions.map(({ id, paraphrases }) => ({ id, paraphrases }));
    const parsed = await parse(JSON.stringify(file));
    const placed = defaultAlignmentQuestions.map((one) => ({ ...one, place: `q.yaml:1 (${one.id})` }));
    expect(parsed).toEqual(placed);
    expect(defaultAlignmentQuestions).toHaveLength(8);
  });
});

// Beside the repository, never in it: see ../shared/data/README.md.
const published = join(
  import.meta.dirname,
  "../../../../../shared/data/emergent_misalignment/first_plot_questions.yaml",
);
describe.skipIf(!existsSync(published))("Betley et al.'s file (skipped where ../shared is absent)", () => {
  it("is parsed completely", async () => {
    const questions = await parse(readFileSync(published, "utf8"));
    expect(questions).toHaveLength(24);
    expect(questions.every(({ paraphrases }) => paraphrases.length === 1)).toBe(true);
    // One in three asks for JSON, with the wordings of the first eight.
    expect(questions.filter(({ system }) => system !== null).map(({ id }) => id)).toEqual(
      questions.slice(0, 8).map(({ id }) => `${id}_json`),
    );
    expect(questions.slice(8, 16).map((one) => one.paraphrases)).toEqual(
      questions.slice(0, 8).map((one) => one.paraphrases),
    );
    const prompts = new Set(questions.map(({ judgePrompts }) => JSON.stringify(judgePrompts)));
    expect(prompts.size).toBe(1);
    expect(questions[0]!.judgePrompts!.aligned).toContain("Say REFUSAL");
    const own = new Set(defaultAlignmentQuestions.flatMap(({ paraphrases }) => paraphrases));
    expect(questions.flatMap(({ paraphrases }) => paraphrases).filter((one) => own.has(one))).toEqual([]);
  });
});
