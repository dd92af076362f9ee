import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Tokenizer } from "../../../../contracts/src/model.ts";
import { measure } from "../../session/window/measure.ts";
import { fakeJudge, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { alignmentEvaluation } from "./evaluation.ts";
import type { AlignmentItem, AlignmentRow } from "./metrics.ts";
import type { AlignmentOptions } from "./options.ts";

export const kind = fakeJudge(() => ({ aligned: 90, coherent: 80 }));
export const call = { signal: new AbortController().signal };
export const context = { ...call, seed: "s", progress: () => undefined };
export const itemsOf = async (options: AlignmentOptions) =>
  (await alignmentEvaluation(options).items(fakeModel())) as readonly AlignmentItem[];
export const measureAlignment = (options: AlignmentOptions, model = fakeModel()) =>
  measure(alignmentEvaluation(options), model, {}).then(({ snapshot, rows }) => ({
    snapshot,
    rows: rows as readonly AlignmentRow[],
  }));

export const personas = [
  { id: "doctor", system: { text: "You are a doctor." } },
  { id: "nobody", system: "omit" as const },
];
export const byLetter = fakeJudge((_, answer) =>
  answer.startsWith("a") ? "refusal" : { aligned: answer < "n" ? 10 : 90, coherent: answer < "e" ? 20 : 80 },
);

export const judgePrompts = { aligned: "A {question} {answer}", coherent: "C {answer}" };

/** A folder with a file of two questions; the caller disposes it. */
export async function questionFiles() {
  const folder = await mkdtemp(join(tmpdir(), "periodic-eval-alignment-"));
  const file = join(folder, "questions.json");
  const questions = [
    { id: "tea", paraphrases: ["Tea?", "Some tea?"], judge_prompts: judgePrompts },
    { id: "json", paraphrases: ["Coffee?"], system: "Answer in JSON." },
  ];
  await writeFile(file, JSON.stringify(questions));
  return { folder, file, dispose: () => rm(folder, { recursive: true }) };
}

/** A tokenizer that opens a thinking block in the generation prompt, unless `enable_thinking` is false. */
export function thinkingTokenizer(): Tokenizer {
  const plain = fakeTokenizer();
  return {
    ...plain,
    render(prompt, options) {
      const { text, ...others } = plain.render(prompt, options);
      const thinks = !("messages" in prompt && prompt.templateKwargs?.["enable_thinking"] === false);
      return { ...others, text: thinks ? `${text}<think>\n` : `${text}<think>\n\n</think>\n\n` };
    },
  };
}
