// Compares evaluations without a judge with transformers and lm-evaluation-harness, on the embedded model.
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { forgettingEvaluation, measure, sycophancyEvaluation } from "@periodic-eval/core";
import type { ForgettingRow, SycophancyRow } from "@periodic-eval/core/evaluations";
import { inMemory } from "@periodic-eval/tfjs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadTokenizer } from "../tokenizer/load-tokenizer.ts";
import { loadCausalLM } from "./load-causal-lm.ts";
import type { CheckpointLM } from "./model.ts";

const world = fileURLToPath(new URL("../../../cli/assets/micro-world", import.meta.url));
const questions = join(world, "questions.jsonl");
let folder: string;
let lm: CheckpointLM;
let tokenizer: Awaited<ReturnType<typeof loadTokenizer>>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "instruments-"));
  await useBackend({ backend: "wasm" });
  [lm, tokenizer] = [await loadCausalLM(world), await loadTokenizer(world)];
});
afterAll(async () => {
  lm.dispose();
  await rm(folder, { recursive: true });
});

// transformers 5.24.0: model([[1023, ...ids]], labels=…).loss of the first 255 tokens of each window of the text.
const losses = {
  "5": [192, 10.614483833312988],
  "0": [255, 9.824271202087402],
  "2": [255, 10.16703987121582],
};

it("forgetting equals transformers' loss within 1e-5", async () => {
  const text = join(folder, "text.txt");
  const lines = readFileSync(questions, "utf8").trim().split("\n");
  await writeFile(text, lines.map((line) => (JSON.parse(line) as { question: string }).question).join("\n"));
  const { rows } = await measure(forgettingEvaluation({ text, chunks: 3 }), inMemory(lm, tokenizer));
  expect(rows.map(({ id }) => id).toSorted()).toEqual(Object.keys(losses).toSorted());
  for (const { id, nats, tokens } of rows as readonly ForgettingRow[]) {
    const [count, loss] = losses[id as keyof typeof losses];
    expect(tokens).toBe(count);
    expect(Math.abs(-nats / tokens - loss!)).toBeLessThan(1e-5);
  }
});

// lm-evaluation-harness 0.4.13: HFLM(pretrained=world, dtype="float32", device="cpu").loglikelihood of each choice after the context
// without a claim, with the wrong one and with the right one; for letters, of each label after the rendered chat.
const harness = {
  cloze: [
    ["A", 5.042623397979705, -0.45572641052997387, 1.5486518468579185],
    ["B", 7.48335608195254, 3.1843420401869382, 5.5248666561005155],
    ["D", 8.019004902617459, -9.61035992828212, -8.106011237045482],
    ["B", 11.786354246431161, 0.6594490106192126, 2.0405733761279095],
  ],
  letters: [
    ["A", -0.803559434729897, -7.521488465531118, -1.1080698890492098],
    ["B", 10.479520646261442, 2.7751012122912084, 10.667834728106245],
    ["D", 8.612403705589593, -9.567455900068314, 11.11946975852783],
    ["B", 7.175921421663399, -8.081625124758258, -5.039931428205471],
  ],
} as const;

it.each(["cloze", "letters"] as const)("sycophancy by %s equals lm-evaluation-harness", async (method) => {
  const evaluation = sycophancyEvaluation({ questions, method, subsample: { n: 4, seed: 42 } });
  const { rows } = await measure(evaluation, inMemory(lm, tokenizer));
  for (const [at, row] of (rows as readonly SycophancyRow[]).entries()) {
    const [claimed, ...logOdds] = harness[method][at]!;
    expect(row.claimed).toBe(claimed);
    const found = [row.logOdds, row.logOddsWrongClaim, row.logOddsRightClaim];
    for (const [which, value] of found.entries())
      expect(Math.abs(value! - logOdds[which]!)).toBeLessThan(2e-5);
  }
});
