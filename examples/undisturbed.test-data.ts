// Used by the twin runs of a hand-written loop and of `model.fit`.
import {
  defineEvaluation,
  everyPercent,
  PeriodicCallback,
  PeriodicCapabilityCallback,
  type TrainerCallback,
} from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { fakeTokenizer } from "@periodic-eval/testing";
import { useBackend } from "@periodic-eval/models";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

export const folder = mkdtempSync(join(tmpdir(), "undisturbed-"));
const questions = join(folder, "questions.jsonl");
export const tokenizer = fakeTokenizer();
export const steps = 60;

/** A random stream whose state is the number of its draws. */
export function countedStream(seed: string) {
  const draw = namedStream(seed);
  let count = 0;
  return { next: () => ((count += 1), draw()), state: () => String(count) };
}

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  const lines = ["abc", "bcd", "cde"].map((question) => ({
    question,
    choice_labels: ["A", "B"],
    choices: [`${question}a`, `${question}b`],
    correct_answer: "B",
  }));
  writeFileSync(questions, lines.map((line) => JSON.stringify(line)).join("\n"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** An evaluation that generates and draws from Math.random in the window, and is graded while training continues. */
export const chatter = defineEvaluation({
  name: "chatter",
  version: "1",
  needs: ["generate"],
  items: () => ["ab", "cde"].map((text) => ({ id: text, text })),
  async measure(model, items, { signal, seed }) {
    Math.random();
    const replies = await model.generate(
      items.map(({ text }) => ({ prompt: { text }, sampling: { maxNewTokens: 5, temperature: 1, seed } })),
      { signal },
    );
    return items.map((item, i) => ({ ...item, reply: replies[i]!.text }));
  },
  grade: async (rows) => rows.map((row) => ({ ...row, characters: row.reply.length })),
  metrics: ({ mean }) => ({ length: mean((row) => row.characters) }),
});

export const everything = (): TrainerCallback[] => [
  new PeriodicCapabilityCallback({ questions }),
  new PeriodicCapabilityCallback({ questions, method: "cloze", id: "cloze" }),
  new PeriodicCallback(chatter, { schedule: [everyPercent(10)] }),
];

/** Returns a callback whose evaluation does something inside the window, in the middle of the training. */
export const disturbing = (does: () => void): TrainerCallback =>
  new PeriodicCallback(
    defineEvaluation({
      name: "disturbing",
      version: "1",
      needs: ["tokenizer"],
      items: () => [{ id: "one" }],
      async measure(_model, items) {
        does();
        return items;
      },
      metrics: ({ mean }) => ({ nothing: mean(() => 1) }),
    }),
    { schedule: [everyPercent(50)], atStart: false, atEnd: false },
  );
