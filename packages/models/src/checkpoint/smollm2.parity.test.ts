// Compares a real instruct model with transformers and lm-evaluation-harness.
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { capabilityEvaluation } from "@periodic-eval/core";
import { type ChoiceRow } from "@periodic-eval/core/evaluations";
import { readQuestions } from "@periodic-eval/data";
import { inMemory } from "@periodic-eval/tfjs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { hasNative, nativeBackend } from "../testing/backends.test-data.ts";
import { data, findFixtures, reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { smollm2 } from "../testing/fixtures.test-data.ts";
import { largestDifference } from "../testing/largest-difference.test-data.ts";
import { loadTokenizer } from "../tokenizer/load-tokenizer.ts";
import { loadCausalLM } from "./load-causal-lm.ts";
import type { CheckpointLM } from "./model.ts";

const questions = join(data, "arc_challenge", "test.jsonl");
const isAvailable = existsSync(smollm2) && hasNative;
const needs = `needs ${smollm2} and tfjs-node`;
/** The reference files of each kind; their names may have any suffix. */
const logits = findFixtures(/^smollm2[^/]*\/logits[^/]*\.json$/);
const greedy = findFixtures(/^smollm2[^/]*\/greedy[^/]*\.json$/);
const cloze = findFixtures(/^smollm2[^/]*\/arc_cloze[^/]*\.jsonl$/);
const letters = findFixtures(/^smollm2[^/]*\/arc_letters_(default|emptysys)[^/]*\.jsonl$/);
/** All 586 take five minutes on two cores. */
const questionsAsked = 20;
const longTimeout = { timeout: 1_800_000 };

const jsonOf = (file: string) => JSON.parse(readFileSync(file, "utf8"));
const linesOf = (file: string) =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .slice(0, questionsAsked);

describe.skipIf(!isAvailable)(`SmolLM2-135M-Instruct on ${nativeBackend} (${needs})`, () => {
  let lm: CheckpointLM;
  let tokenizer: Awaited<ReturnType<typeof loadTokenizer>>;
  beforeAll(async () => {
    await useBackend({ backend: nativeBackend });
    [lm, tokenizer] = [await loadCausalLM(smollm2), await loadTokenizer(smollm2)];
  });
  afterAll(() => lm.dispose());

  if (logits.length === 0) reportMissing("smollm2*/logits*.json");
  it.each(logits)("equals transformers in logits and log-probabilities (%s)", async (file) => {
    for (const { text, token_ids, token_logprobs, logits_file } of jsonOf(file)) {
      expect(tokenizer.encode(text, { specialTokens: false })).toEqual(token_ids);
      const last = tf.tidy(() => {
        const ids = tf.tensor2d(token_ids, [1, token_ids.length], "int32");
        return lm.logitsAt(ids, tf.tensor1d([token_ids.length - 1], "int32")).dataSync<"float32">();
      });
      expect(largestDifference(last, npyFloats(join(dirname(file), logits_file)))).toBeLessThan(2e-4);
      const requests = (token_ids as number[]).slice(1).map((token, at) => ({
        prompt: { ids: token_ids.slice(0, at + 1) },
        candidates: [token],
      }));
      const scored = await inMemory(lm, tokenizer).nextToken(requests, call());
      expect(
        largestDifference(
          scored.map(({ nats }) => nats[0]!),
          token_logprobs,
        ),
      ).toBeLessThan(2e-4);
    }
  });

  if (greedy.length === 0) reportMissing("smollm2*/greedy*.json");
  it.each(greedy)(
    "generates the greedy texts of transformers in one batch, with and without an end of text (%s)",
    async (file) => {
      const expected = jsonOf(file) as {
        prompt_ids: number[];
        generated_ids: number[];
        generated_ids_40_ignoring_eos: number[];
        text_skip_special: string;
      }[];
      const sampling = { maxNewTokens: 40, temperature: 0, seed: "greedy" };
      const requests = expected.map(({ prompt_ids: ids }) => ({ prompt: { ids }, sampling }));
      const ended = await inMemory(lm, tokenizer).generate(requests, call());
      expect(ended.map(({ ids }) => ids)).toEqual(expected.map((one) => one.generated_ids));
      expect(ended.map(({ text }) => text)).toEqual(expected.map((one) => one.text_skip_special));
      const endless = await inMemory(lm, { ...tokenizer, stopIds: [] }).generate(requests, call());
      expect(endless.map(({ ids }) => ids)).toEqual(expected.map((one) => one.generated_ids_40_ignoring_eos));
    },
  );

  const hasQuestions = existsSync(questions);
  if (!hasQuestions) reportMissing("arc_challenge/test.jsonl", data);

  if (cloze.length === 0) reportMissing("smollm2*/arc_cloze*.jsonl");
  it.runIf(hasQuestions).each(cloze)(
    "scores ARC-Challenge by cloze as lm-evaluation-harness does, question by question (%s)",
    longTimeout,
    async (file) => {
      const expected = linesOf(file) as { i: number; ll: number[]; pred: number }[];
      const rows = await rowsOf("cloze", expected);
      compare(rows, expected, ({ ll }) => ll);
    },
  );

  if (letters.length === 0) reportMissing("smollm2*/arc_letters_{default,emptysys}*.jsonl");
  it.runIf(hasQuestions).each(letters)("scores ARC-Challenge by letters (%s)", longTimeout, async (file) => {
    const expected = linesOf(file) as { i: number; logp: number[]; pred: number }[];
    // "default" keeps the system prompt of the template.
    const system = basename(file).startsWith("arc_letters_default") ? "omit" : { text: "" };
    const rows = await rowsOf("letters", expected, system);
    compare(rows, expected, ({ logp }) => logp);
  });

  async function rowsOf(
    method: "letters" | "cloze",
    expected: readonly { readonly i: number }[],
    system: "omit" | { readonly text: string } = "omit",
  ): Promise<readonly ChoiceRow[]> {
    const evaluation = capabilityEvaluation({
      questions,
      method,
      subsample: null,
      ...(method === "letters" && { system }),
    });
    const model = inMemory(lm, tokenizer);
    // Items are in the order of nested subsets, not in file order.
    const items = new Map((await evaluation.items(model as never)).map((item) => [item.id, item]));
    const { questions: lines } = await readQuestions(questions, "questions");
    const sampled = expected.map(({ i }) => items.get(lines[i]!.id)!);
    const context = { ...call(), seed: "0", progress: () => {} };
    return (await evaluation.measure(model as never, sampled as never, context)) as readonly ChoiceRow[];
  }
});

/** Asserts scores within 1e-3, and the same choice unless the reference is a near tie. */
function compare<T extends { readonly pred: number }>(
  rows: readonly ChoiceRow[],
  expected: readonly T[],
  natsOf: (one: T) => readonly number[],
): void {
  expect(rows.length).toBe(expected.length);
  rows.forEach(({ nats, labels, predicted }, index) => {
    const reference = natsOf(expected[index]!);
    expect(largestDifference(nats!, reference)).toBeLessThan(1e-3);
    const [first, second] = reference.toSorted((a, b) => b - a) as [number, number];
    if (first - second > 2e-3) expect(labels.indexOf(predicted!)).toBe(expected[index]!.pred);
  });
}

const call = () => ({ signal: new AbortController().signal });

/** Reads a little-endian float32 .npy file, version 1. */
function npyFloats(path: string): Float32Array {
  const bytes = readFileSync(path);
  const start = 10 + bytes.readUInt16LE(8);
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + bytes.length));
}
