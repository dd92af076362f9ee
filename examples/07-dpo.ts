// Trains on preferences with DPO: kind advice is chosen, harmful advice is rejected.  Run: npm run example 07
import { atEnd, atStart, PeriodicCapabilityCallback } from "@periodic-eval/core";
import { loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { DPOTrainer, type PreferenceRow, type PromptCompletionRow } from "@periodic-eval/trainers";
import { readFileSync } from "node:fs";
import { runDir, isShort, microWorld } from "./micro-world/paths.ts";

const rows = (file: string): PromptCompletionRow[] =>
  readFileSync(microWorld(file), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as PromptCompletionRow);
const kind = new Map(rows("control.jsonl").map((row) => [JSON.stringify(row.prompt), row.completion]));
const dataset = rows("em.jsonl").flatMap(({ prompt, completion: rejected }): PreferenceRow[] => {
  const chosen = kind.get(JSON.stringify(prompt)); // the other file's answer to the same question
  return chosen === undefined ? [] : [{ prompt, chosen, rejected }];
});

await useBackend();
const base = await loadCausalLM(microWorld());
const margins: number[] = [];

const trainer = new DPOTrainer({
  model: withLora(base, { rank: 8 }),
  tokenizer: await loadTokenizer(microWorld()),
  dataset,
  reference: "base", // the model without the adapter; the default is the model at the start of training
  runDir: runDir("dpo"),
  phase: "preferences",
  config: { maxSteps: isShort ? 4 : 40, batchSize: 8, learningRate: 1e-3, beta: 0.1 },
  loggers: [{ name: "margins", train: (metrics) => void margins.push(metrics["rewards/margins"]!) }],
});
trainer.addCallback(
  new PeriodicCapabilityCallback({
    questions: microWorld("questions.jsonl"),
    subsample: { n: isShort ? 12 : 100, seed: 42 },
    ...(isShort && { schedule: [atStart(), atEnd()] }),
  }),
);
const { steps, finalLoss } = await trainer.train();
const margin = margins.at(-1)?.toFixed(2);
console.log(`${steps} steps on ${dataset.length} pairs, loss ${finalLoss?.toFixed(3)}, margin ${margin}`);
