// Watches SFTTrainer with one callback: two lines.  Run: npm run example 01
import { atEnd, atStart, PeriodicCapabilityCallback } from "@periodic-eval/core";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";
import { runDir, short, world } from "./micro-world/paths.ts";

await useBackend();
const model = await loadCausalLM(world());
const tokenizer = await loadTokenizer(world());

const trainer = new SFTTrainer({
  model,
  tokenizer,
  dataset: world("coupling.jsonl"),
  runDir: runDir("sft-trainer"),
  phase: "coupling",
  config: { maxSteps: short ? 4 : 40, batchSize: 8, learningRate: 5e-4 },
  session: { budget: { overheadPercent: null } }, // a training this short would skip most measurements
});
trainer.addCallback(
  new PeriodicCapabilityCallback({
    questions: world("questions.jsonl"),
    subsample: { n: short ? 12 : 100, seed: 42 },
    ...(short && { schedule: [atStart(), atEnd()] }),
  }),
);
const { steps, finalLoss } = await trainer.train();
console.log(
  `${steps} steps, loss ${finalLoss?.toFixed(3)}; snapshots in ${runDir("sft-trainer")}/periodic_eval`,
);
