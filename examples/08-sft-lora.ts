// Trains an adapter instead of all weights, measures with and without it, and saves it in PEFT's format.  Run: npm run example 08
import { atEnd, atStart, everyPercent, PeriodicCapabilityCallback } from "@periodic-eval/core";
import { loadCausalLM, loadLora, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";
import { runDir, isShort, microWorld } from "./micro-world/paths.ts";

await useBackend();
const base = await loadCausalLM(microWorld());
const model = withLora(base, { rank: 8, alpha: 16, dropout: 0.05 });
const tokenizer = await loadTokenizer(microWorld());
const run = runDir("sft-lora");

const capability = {
  questions: microWorld("questions.jsonl"),
  subsample: { n: isShort ? 12 : 100, seed: 42 },
  schedule: isShort ? [atStart(), atEnd()] : [everyPercent(50)],
};
const trainer = new SFTTrainer({
  model,
  tokenizer,
  dataset: microWorld("coupling.jsonl"),
  runDir: run,
  phase: "coupling",
  config: { maxSteps: isShort ? 4 : 40, batchSize: 8, learningRate: 2e-3, saveSteps: isShort ? 2 : 20 },
});
trainer.addCallback(new PeriodicCapabilityCallback(capability));
trainer.addCallback(new PeriodicCapabilityCallback({ ...capability, id: "without_adapter", on: "base" }));
const { steps, finalLoss } = await trainer.train();

await model.save(`${run}/adapter`); // PEFT can load this folder
await model.saveMerged(`${run}/merged`); // any library that reads the model can load this one
const reloaded = await loadLora(base, `${run}/adapter`);
console.log(
  `${steps} steps, loss ${finalLoss?.toFixed(3)}; ${reloaded.trainables().length} adapter weights in ${run}/adapter`,
);
