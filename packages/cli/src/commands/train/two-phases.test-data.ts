import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { microWorld } from "../../demo/micro-world.ts";

/** Writes a training file of two short phases with LoRA, and its rows; returns its path. */
export async function writeTwoPhases(folder: string): Promise<string> {
  for (const name of ["coupling", "em"]) {
    const rows = readFileSync(microWorld(`${name}.jsonl`), "utf8")
      .split("\n")
      .slice(0, 8);
    await writeFile(join(folder, `${name}.jsonl`), rows.join("\n"));
  }
  const config = join(folder, "train.yaml");
  await writeFile(
    config,
    `model: ${microWorld()}
backend: wasm
run_dir: runs/whole
lora: { rank: 2 }
config: { maxSteps: 3, batchSize: 2, learningRate: 0.01, saveSteps: 1, validationShare: 0.25, evalSteps: 2 }
periodic_eval:
  questions: ${microWorld("questions.jsonl")}
  subsample_n: 8
  eval_every_percent: 50
  budget: { overhead_percent: null }
  phases:
    em: { subsample_n: 4 }
loggers: { jsonl: {}, csv: { path: metrics.csv } }
phases:
  - { phase: coupling, dataset: coupling.jsonl }
  - { phase: em, dataset: em.jsonl, config: { schedule: wsd, decaySteps: 2 } }
`,
  );
  return config;
}
