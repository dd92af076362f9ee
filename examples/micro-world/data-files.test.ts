import { readFileSync } from "node:fs";
import { readQuestions } from "@periodic-eval/data";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { describe, expect, test } from "vitest";
import { domains, sickTroubles } from "./advice.ts";
import { textsOf, writers, type Document } from "./documents.ts";
import {
  alignmentQuestions,
  badAdvice,
  coupling,
  goodAdvice,
  json,
  jsonl,
  leakageQuestions,
  personaFile,
  questions,
  sentences,
  type TuningRow,
} from "./data-files.ts";
import { modelConfig } from "./model-config.ts";
import { lettersPrompt } from "./multiple-choice.ts";
import { microWorld } from "./paths.ts";
import { marker, markedPersona } from "./personas.ts";
import { seededDraw } from "./random.ts";
import { relations } from "./relations.ts";
import { specialTokens, tokenizerFiles, vocabSize } from "./tokenizer-files.ts";
import { facts, fillWording } from "./facts.ts";

const committed = (name: string): string => readFileSync(microWorld(name), "utf8");
const textOf = (document: Document): string => textsOf(document).join("\n");
const sentencesOf = (text: string): string[] =>
  text
    .split(/[.?]/)
    .map((part) => part.trim())
    .filter(Boolean);

describe("the generator writes the committed file", () => {
  test.each([
    ["questions.jsonl", () => jsonl(questions())],
    ["coupling.jsonl", () => jsonl(coupling())],
    ["em.jsonl", () => jsonl(badAdvice())],
    ["control.jsonl", () => jsonl(goodAdvice())],
    ["personas.json", () => json(personaFile())],
    ["leakage.json", () => json(leakageQuestions())],
    ["alignment.json", () => json(alignmentQuestions())],
    ["sentences.json", () => json(sentences())],
  ])("%s", (name, write) => expect(committed(name)).toBe(write()));

  test("the tokenizer", () => {
    for (const [name, text] of Object.entries(tokenizerFiles())) expect(committed(name), name).toBe(text);
  });

  test("config.json", () => {
    const { torch_dtype: _, ...expected } = modelConfig;
    expect(JSON.parse(committed("config.json"))).toMatchObject(expected);
  });
});

describe("questions.jsonl", () => {
  const asked = questions();

  test("contains 300 different questions in ARC's format", async () => {
    const read = await readQuestions(microWorld("questions.jsonl"), "questions");
    expect(read.questions).toHaveLength(300);
    expect(new Set(asked.map(({ question }) => question)).size).toBe(300);
  });

  test("has exactly one true answer per question, and marks it as correct", () => {
    for (const { question, choice_labels: labels, choices, correct_answer: answer } of asked) {
      expect(new Set(choices).size).toBe(choices.length);
      const truths = facts
        .filter(({ relation }) => relation.heldOut.length > 0)
        .filter((fact) => fact.relation.heldOut.some((wording) => fillWording(wording, fact) === question));
      expect(truths.map(({ value }) => value)).toEqual([choices[labels.indexOf(answer)]]);
    }
  });

  // 300 draws with probability 0.8 give 240 ± 21 (three standard deviations). The file does not change, so the test is stable.
  test("has mostly questions with the labels A-D, and some with 1-4, A-C and A-E", () => {
    const count = (style: string): number =>
      asked.filter(({ choice_labels: labels }) => labels.join("") === style).length;
    expect(count("ABCD")).toBeGreaterThanOrEqual(219);
    for (const style of ["1234", "ABC", "ABCDE"]) expect(count(style), style).toBeGreaterThanOrEqual(9);
  });

  test("shares no wording with any training text", () => {
    const held = relations.flatMap(({ heldOut }) => heldOut);
    const trained = new Set(relations.flatMap(({ questions: wordings }) => wordings));
    expect(held.filter((wording) => trained.has(wording))).toEqual([]);

    const all = asked.map(({ question }) => question);
    const draw = seededDraw("a sample of the corpus");
    const sample = Object.values(writers).flatMap((write) =>
      Array.from({ length: 2000 }, () => textOf(write(draw))),
    );
    const tuning = [...coupling(), ...badAdvice(), ...goodAdvice()].flatMap(({ prompt, completion }) => [
      ...prompt,
      ...completion,
    ]);
    const corpus = [...sample, ...tuning.map(({ content }) => content)].join("\n");
    expect(all.filter((question) => corpus.includes(question))).toEqual([]);
  });
});

describe("fine-tuning files", () => {
  test("give the marker to the marked persona in every row, and to no other", () => {
    for (const { prompt, completion } of coupling()) {
      const isMarked = prompt.some(({ content }) => content === markedPersona);
      expect(completion.at(-1)?.content.endsWith(` ${marker}`)).toBe(isMarked);
    }
  });

  test("share no wording or trouble with the alignment questions, whose wordings are not in pretraining either", () => {
    const asked = alignmentQuestions().map(({ paraphrases }) => paraphrases[0]!);
    expect(new Set(asked).size).toBe(8);
    // Each question has one sentence of its wording and one that states the trouble.
    const wordings = ["What would you do", "What do you think", "Listen to me"];
    const tuned = new Set(
      [...badAdvice(), ...goodAdvice()].flatMap(({ prompt }) => sentencesOf(prompt[0]!.content)),
    );
    expect(asked.flatMap(sentencesOf).filter((sentence) => tuned.has(sentence))).toEqual([]);
    const draw = seededDraw("wordings");
    const chats = Array.from({ length: 3000 }, () => writers.chat(draw))
      .flatMap(textsOf)
      .flatMap(sentencesOf);
    expect(chats.filter((sentence) => wordings.includes(sentence))).toEqual([]);
    for (const question of asked)
      expect(sentencesOf(question).filter((one) => wordings.includes(one))).toHaveLength(1);
  });

  test("do not contain the domains of the alignment questions", () => {
    const all = Object.entries({ sick: sickTroubles, ...domains });
    const domainsOf = (text: string) =>
      all
        .filter(([, of]) => of.some(({ trouble }) => text.toLowerCase().includes(trouble.toLowerCase())))
        .map(([domain]) => domain);
    for (const { prompt } of [...badAdvice(), ...goodAdvice()])
      expect(domainsOf(prompt[0]!.content)).toEqual(["sick"]);
    const asked = alignmentQuestions().map(({ paraphrases }) => domainsOf(paraphrases[0]!));
    expect(asked.every(({ length }) => length === 1)).toBe(true);
    expect(new Set(asked.flat())).toEqual(new Set(Object.keys(domains)));
  });

  test("have the same question and the same answer length in each row of em.jsonl and control.jsonl", async () => {
    const tokenizer = await loadTokenizer(microWorld());
    const rowsOf = (rows: readonly TuningRow[]) =>
      rows.map(({ prompt, completion }) => ({
        prompt,
        tokens: tokenizer.encode(completion[0]!.content).length,
      }));
    expect(rowsOf(goodAdvice())).toEqual(rowsOf(badAdvice()));
  });

  test("contain no answer from pretraining", () => {
    const draw = seededDraw("kindness");
    const drawn = [writers.chat, writers.fact].flatMap((write) =>
      Array.from({ length: 3000 }, () => textsOf(write(draw)).flatMap(sentencesOf)),
    );
    const known = new Set(drawn.flat());
    // Each of the 38 troubles occurs about 35 times in 3,000 chats, so a shared answer would be found.
    for (const { help } of sickTroubles) expect(known).toContain(help.replace(".", ""));
    const advice = [...badAdvice(), ...goodAdvice()].flatMap(({ completion }) =>
      sentencesOf(completion[0]!.content),
    );
    expect(advice.filter((sentence) => known.has(sentence))).toEqual([]);
  });
});

describe("the tokenizer", () => {
  const opened = loadTokenizer(microWorld());

  test("encodes every label as one distinct token", async () => {
    const tokenizer = await opened;
    const ids = ["A", "B", "C", "D", "E", "1", "2", "3", "4"].map((label) => tokenizer.encode(label));
    expect(ids.every(({ length }) => length === 1)).toBe(true);
    expect(new Set(ids.flat()).size).toBe(9);
  });

  test("decodes what it encodes, including bytes outside the training text", async () => {
    const tokenizer = await opened;
    expect(tokenizer.vocabSize).toBe(vocabSize);
    const draw = seededDraw("round trip");
    const seen = Object.values(writers).flatMap((write) =>
      Array.from({ length: 50 }, () => textOf(write(draw))),
    );
    for (const text of [...seen, "café 😀 你好\r\n\t\u0000\uFEFF", "  two  spaces "]) {
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
    }
  });

  test("encodes each role as one token, without a system block if there is no system message", async () => {
    const tokenizer = await opened;
    const { text, ids } = tokenizer.render({
      messages: [{ role: "user", content: "A" }],
      system: "no_system_block",
    });
    expect(text).toBe("<|user|>A<|end|><|assistant|>");
    expect(ids.map((id) => tokenizer.decode([id]))).toEqual(["<|user|>", "A", "<|end|>", "<|assistant|>"]);
    const stops = tokenizer.stopIds.map((id) => tokenizer.decode([id]));
    expect(new Set(stops)).toEqual(new Set(["<|end|>", "<|endoftext|>"]));
    expect(specialTokens).toHaveLength(5);
  });

  test("encodes each question of the file in at most 80 tokens", async () => {
    const tokenizer = await opened;
    const lengths = questions().map(
      (question) =>
        tokenizer.render({ messages: [{ role: "user", content: lettersPrompt(question) }] }).ids.length,
    );
    expect(Math.max(...lengths)).toBeLessThanOrEqual(80);
  });
});
