// Measures capability while SFTTrainer trains, with one callback.  Run: npm run example 01
import { atEnd, atStart, PeriodicCapabilityCallback } from "@periodic-eval/core";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";
import { runDir, isShort, microWorld } from "./micro-world/paths.ts";

await useBackend();
const model = await loadCausalLM(microWorld());
const tokenizer = await loadTokenizer(microWorld());

const trainer = new SFTTrainer({
  model,
  tokenizer,
  dataset: microWorld("coupling.jsonl"),
  runDir: runDir("sft-trainer"),
  phase: "coupling",
  config: { maxSteps: isShort ? 4 : 40, batchSize: 8, learningRate: 5e-4 },
});
trainer.addCallback(
  new PeriodicCapabilityCallback({
    questions: microWorld("questions.jsonl"),
    subsample: { n: isShort ? 12 : 100, seed: 42 },
    ...(isShort && { schedule: [atStart(), atEnd()] }),
  }),
);
await trainer.train(); // prints progress, measurements, and the command that writes the page
