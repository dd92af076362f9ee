import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readDocument } from "./ifeval-document.ts";

const of = (id: string, kwargs: unknown) => ({
  key: 7,
  prompt: "Write.",
  instruction_id_list: [id],
  kwargs: [kwargs],
});
const read = (record: unknown) => readDocument(record, "data.jsonl:3");

describe("readDocument", () => {
  it("reads a JSONL record, and a hub record with nulls and 64-bit integers", () => {
    const kwargs = { num_bullets: 3n, relation: null, keywords: null };
    const { key, prompt, instructions } = read({
      ...of("detectable_format:number_bullet_lists", kwargs),
      key: 7n,
    });
    expect([key, prompt]).toEqual(["7", "Write."]);
    expect(instructions).toEqual([
      { id: "detectable_format:number_bullet_lists", kwargs: { num_bullets: 3 } },
    ]);
  });

  it("suggests the nearest instruction for an unknown name", () => {
    expect(() => read(of("keyword:existence", {}))).toThrow(
      /data\.jsonl:3 \(key 7\), kwargs\[0\]: got the instruction "keyword:existence".*Did you mean "keywords:existence"\?/su,
    );
  });

  it.each([
    ["keywords:existence", {}, "of keywords:existence: got no keywords"],
    [
      "keywords:existence",
      { keywords: [] },
      "got keywords = [], expected keywords: one or more non-empty strings",
    ],
    ["keywords:existence", { keywords: ["a", " "] }, "expected keywords: one or more non-empty strings"],
    [
      "keywords:existence",
      { keywords: ["a"], num_words: 3 },
      'got the unknown key "num_words", expected some of keywords',
    ],
    [
      "keywords:frequency",
      { keyword: "a", frequency: 1, relation: "more than" },
      'expected relation: "at least" or',
    ],
    [
      "keywords:letter_frequency",
      { letter: "ab", let_frequency: 1, let_relation: "at least" },
      "letter: one character",
    ],
    [
      "language:response_language",
      { language: "english" },
      'got language = "english", expected language: one of af, ar',
    ],
    ["language:response_language", { language: "ca" }, 'got language = "ca"'],
    [
      "length_constraints:number_words",
      { num_words: 0, relation: "at least" },
      "num_words: a positive integer",
    ],
    [
      "length_constraints:number_words",
      { num_word: 5, relation: "at least" },
      'got the unknown key "num_word", expected some of relation, num_words. Did you mean "num_words"?',
    ],
    ["length_constraints:number_paragraphs", { num_paragraphs: 1.5 }, "got num_paragraphs = 1.5"],
    [
      "length_constraints:nth_paragraph_first_word",
      { num_paragraphs: 2, nth_paragraph: 3, first_word: "a" },
      "got nth_paragraph = 3, expected nth_paragraph: at most num_paragraphs, which is 2",
    ],
    ["punctuation:no_comma", { frequency: 1 }, 'got the unknown key "frequency", expected no keys'],
    ["punctuation:no_comma", null, "got null, expected an object of kwargs"],
  ])("reports wrong kwargs of %s: %j", (id, kwargs, message) => {
    expect(() => read(of(id, kwargs))).toThrow(message);
  });

  it.each([
    [null, "got no key"],
    [{ key: 1 }, "got no prompt"],
    [{ key: 1, prompt: "a", instruction_id_list: [] }, "got instruction_id_list = []"],
    [
      { key: 1, prompt: "a", instruction_id_list: ["punctuation:no_comma"], kwargs: [] },
      "kwargs: one object per id in instruction_id_list: 1",
    ],
  ])("reports what a record lacks: %j", (record, message) => {
    expect(() => read(record)).toThrow(message);
  });
});

const data = "../shared/data/ifeval/input_data.jsonl";

describe.skipIf(!existsSync(data))(`${data}${existsSync(data) ? "" : " (absent)"}`, () => {
  it("reads every document", () => {
    const documents = readFileSync(data, "utf8")
      .trimEnd()
      .split("\n")
      .map((line, at) => readDocument(JSON.parse(line), `${data}:${at + 1}`));
    expect(documents.length).toBe(541);
    expect(documents.flatMap(({ instructions }) => instructions).length).toBe(834);
    expect(new Set(documents.map(({ key }) => key)).size).toBe(541);
  });
});
