// Trains an adapter instead of all weights, measures with and without it, and saves it in PEFT's format.  Run: npm run example 08
import { atEnd, atStart, everyPercent, PeriodicCapabilityCallback } from "@periodic-eval/core";
import { loadCausalLM, loadLora, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";
import { runDir, short, world } from "./micro-world/paths.ts";

await useBackend();
const base = await loadCausalLM(world());
const model = withLora(base, { rank: 8, alpha: 16, dropout: 0.05 });
const tokenizer = await loadTokenizer(world());
const run = runDir("sft-lora");

const capability = {
  questions: world("questions.jsonl"),
  subsample: { n: short ? 12 : 100, seed: 42 },
  schedule: short ? [atStart(), atEnd()] : [everyPercent(50)],
};
const trainer = new SFTTrainer({
  model,
  tokenizer,
  dataset: world("coupling.jsonl"),
  runDir: run,
  phase: "coupling",
  config: { maxSteps: short ? 4 : 40, batchSize: 8, learningRate: 2e-3, saveSteps: short ? 2 : 20 },
  session: { budget: { overheadPercent: null } }, // a training this short would skip most measurements
});
trainer.addCallback(new PeriodicCapabilityCallback(capability));
trainer.addCallback(new PeriodicCapabilityCallback({ ...capability, id: "without_adapter", on: "base" }));
const { steps, finalLoss } = await trainer.train();

await model.save(`${run}/adapter`); // PEFT loads it
await model.saveMerged(`${run}/merged`); // and anyone this
const again = await loadLora(base, `${run}/adapter`);
console.log(
  `${steps} steps, loss ${finalLoss?.toFixed(3)}; ${again.trainables().length} weights of the adapter in ${run}/adapter`,
);
