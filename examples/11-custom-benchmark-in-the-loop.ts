// Measures a benchmark of your own, from a folder, while a model is trained and after it.  Run: npm run example 11
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { BenchmarkEvaluator } from "@periodic-eval/tasks";
import { SFTTrainer } from "@periodic-eval/trainers";
import { isShort, microWorld, runDir, village } from "./micro-world/paths.ts";

await useBackend();
const trainer = new SFTTrainer({
  model: await loadCausalLM(microWorld()),
  tokenizer: await loadTokenizer(microWorld()),
  dataset: microWorld("em.jsonl"),
  runDir: runDir("custom-benchmark"),
  phase: "em",
  config: { maxSteps: isShort ? 4 : 40, batchSize: 8, learningRate: 5e-4 },
});

const benchmark = new BenchmarkEvaluator({
  name: "village",
  benchmark: village("benchmark"), // tasks.jsonl and metadata.yaml
  runEvery: isShort ? 2 : 10, // steps
  maxTokens: 16,
  breakdownKeys: ["topic"],
});
trainer.addCallback(benchmark); // measures the tasks of the split `val`
await trainer.train();

const { snapshot, rows } = await benchmark.measure(trainer.evaluableModel); // the split `test`; `evaluate` returns the numbers alone
for (const { id, completions } of rows) console.log(id, "→", completions[0]?.text);
console.log("pass rate after training:", snapshot.metrics["pass_rate"]?.value);
