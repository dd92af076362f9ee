import { capabilityEvaluation, measure, PeriodicEvalError, type Message } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/tfjs";
import * as tf from "@tensorflow/tfjs";
import fc from "fast-check";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { charTokenizer } from "./char-tokenizer.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const errorOf = (run: () => unknown): PeriodicEvalError => {
  try {
    run();
  } catch (error) {
    if (error instanceof PeriodicEvalError) return error;
  }
  throw new Error("expected a PeriodicEvalError");
};

describe("charTokenizer", () => {
  it("gives the i-th character the id i", () => {
    const tokenizer = charTokenizer("ab \n");
    expect(tokenizer.vocabSize).toBe(4);
    expect(tokenizer.encode("ba\nb")).toEqual([1, 0, 3, 1]);
    expect(tokenizer.decode([1, 0, 3, 1])).toBe("ba\nb");
    expect(tokenizer.render({ text: "b a" })).toEqual({ text: "b a", ids: [1, 2, 0], assistantMask: null });
    expect([tokenizer.stopIds, tokenizer.eosId]).toEqual([[], null]);
  });

  it("decodes what it encodes, for any text", () => {
    const text = fc.string({ unit: fc.constantFrom(..."a \n\0▁é́😀𝒳"), minLength: 1 });
    fc.assert(
      fc.property(text, (written) => {
        const tokenizer = charTokenizer(new Set(written));
        const ids = tokenizer.encode(written);
        expect(tokenizer.decode(ids)).toBe(written);
        expect(ids).toHaveLength([...written].length);
        expect(Math.max(...ids)).toBe(tokenizer.vocabSize - 1);
      }),
    );
  });

  it("throws for a character outside of its vocabulary, or replaces it by `unknown`", () => {
    const { code, where, got } = errorOf(() => charTokenizer("ab").encode("ab\nbéa\n"));
    expect([code, where, got]).toEqual([
      "data",
      'charTokenizer: the text "ab\\nbéa\\n"',
      'the character "\\n" (U+000A)',
    ]);
    const tokenizer = charTokenizer("ab?", { unknown: "?" });
    expect(tokenizer.decode(tokenizer.encode("aéb"))).toBe("a?b");
  });

  it("throws for an id without a character", () => {
    const { code, got, expected } = errorOf(() => charTokenizer("ab").decode([0, 2]));
    expect([code, got, expected]).toEqual(["model", "the token id 2", "an id from 0 to 1"]);
  });

  it("ends completions and training texts at `end`", () => {
    const { stopIds, eosId } = charTokenizer("ab\n", { end: "\n" });
    expect([stopIds, eosId]).toEqual([[2], 2]);
  });

  it.each<[unknown, object, readonly (string | number)[]]>([
    ["", {}, ["chars"]],
    [undefined, {}, ["chars"]],
    [["a", "bc"], {}, ["chars", 1]],
    [["a", ""], {}, ["chars", 1]],
    [["a", 1], {}, ["chars", 1]],
    ["aba", {}, ["chars", 2]],
    ["ab", { unknown: "c" }, ["unknown"]],
    ["ab", { end: 1 }, ["end"]],
    ["ab", { chatTemplate: "{{ messages }}" }, ["chatTemplate"]],
    ["ab", { unk: "a" }, ["unk"]],
  ])("refuses the characters %j with the options %j", (chars, options, path) => {
    const error = errorOf(() => charTokenizer(chars as string, options));
    expect([error.code, error.path]).toEqual(["config", path]);
  });

  it("has a fingerprint of the vocabulary and the chat template", () => {
    const chat = (name: string) => (messages: readonly Message[]) =>
      messages.map(({ content }) => name + content).join();
    const made = [
      charTokenizer("ab"),
      charTokenizer("ba"),
      charTokenizer("ab", { end: "a" }),
      charTokenizer("ab", { unknown: "a" }),
      charTokenizer("ab", { chatTemplate: chat("x") }),
      charTokenizer("ab", { chatTemplate: chat("y") }),
    ];
    expect(new Set(made.map(({ fingerprint }) => fingerprint)).size).toBe(made.length);
    expect(charTokenizer(["a", "b"]).fingerprint).toBe(made[0]!.fingerprint);
  });

  it("renders chats with its template, marks the assistant's characters, and throws without a template", () => {
    const chatTemplate = (messages: readonly Message[], addGenerationPrompt: boolean) =>
      messages.map(({ role, content }) => `${role[0]}${content}\n`).join("") +
      (addGenerationPrompt ? "a" : "");
    const messages = [
      { role: "user", content: "é▁" },
      { role: "assistant", content: "as" },
    ];
    const tokenizer = charTokenizer("usaé▁\n", { chatTemplate });
    const { text, ids, assistantMask } = tokenizer.render({ messages }, { ending: "complete" });
    expect(text).toBe("ué▁\naas\n");
    expect(tokenizer.decode(ids)).toBe(text);
    // The assistant's turn begins after the generation prompt "a".
    const mask = [false, false, false, false, false, true, true, true];
    expect(assistantMask).toEqual(mask);
    const unknown = charTokenizer("usa?▁\n", { chatTemplate, unknown: "?" });
    const face = [{ role: "user", content: "😀▁" }, messages[1]!];
    expect(unknown.render({ messages: face }, { ending: "complete" }).assistantMask).toEqual(mask);
    const { code, where } = errorOf(() => charTokenizer("a").render({ messages }));
    expect([code, where]).toEqual(["model", "charTokenizer"]);
  });
});

it("measures capability by letters and by cloze on a model of characters", async () => {
  await tf.setBackend("cpu");
  const folder = temporaryFolder();
  const questions = join(folder, "questions.jsonl");
  const row = (choices: string[], answer: string) =>
    JSON.stringify({ question: "Which?", choice_labels: ["A", "B"], choices, correct_answer: answer });
  await writeFile(questions, `${row(["cat", "dog"], "B")}\n${row(["dot", "bat"], "A")}\n`);
  const tokenizer = charTokenizer(
    new Set("Question: Which?\nAnswer: cat dog bat dot\n(A) (B) The correct answer is ("),
    { chatTemplate: ([user], addGenerationPrompt) => `${user!.content}${addGenerationPrompt ? "" : "\n"}` },
  );
  /** After "(" the most likely character is "B", after a space "d". */
  const after = new Map([
    ["(", "B"],
    [" ", "d"],
  ]);
  const table = tf.tensor2d(
    Array.from({ length: tokenizer.vocabSize }, (_, id) => {
      const likely = after.get(tokenizer.decode([id]));
      return Array.from({ length: tokenizer.vocabSize }, (__, to) =>
        tokenizer.decode([to]) === likely ? 3 : 0,
      );
    }),
  );
  onTestFinished(() => table.dispose());
  const model = inMemory(
    {
      vocabSize: tokenizer.vocabSize,
      contextLength: 128,
      logits: (ids) => tf.gather(table, ids) as tf.Tensor as tf.Tensor3D,
    },
    tokenizer,
  );
  // Letters: "B" for both, right once. Cloze: "dog" and "dot", right twice.
  for (const [method, accuracy] of [
    ["letters", 0.5],
    ["cloze", 1],
  ] as const) {
    const { snapshot } = await measure(capabilityEvaluation({ questions, method }), model);
    expect(snapshot.metrics["accuracy"]).toMatchObject({ value: accuracy, n: 2 });
  }
  // The second question has characters that this tokenizer does not know: an error before anything is measured.
  const few = charTokenizer(new Set("Question: Which?\nAnswer: cat dog"));
  const unmeasured = inMemory(
    { vocabSize: few.vocabSize, contextLength: 128, logits: () => expect.unreachable() },
    few,
  );
  await expect(
    measure(capabilityEvaluation({ questions, method: "cloze" }), unmeasured),
  ).rejects.toMatchObject({
    code: "data",
    expected: `one of the ${few.vocabSize} characters of the tokenizer`,
  });
});
