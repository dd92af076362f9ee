// Measures a saved model and its adapter by a suite of benchmarks.  Run: npm run example 12 (after 08, which trains the adapter)
import { existsSync } from "node:fs";
import { openCheckpoint, useBackend } from "@periodic-eval/models";
import { Evaluator, tasks } from "@periodic-eval/tasks";
import { isShort, microWorld, runDir, village } from "./micro-world/paths.ts";

const trained = `${runDir("sft-lora")}/adapter`;
if (!existsSync(trained)) {
  console.error(`There is no adapter in ${trained}. Train it first: npm run example 08`);
  process.exit(1);
}

await useBackend();
const results = runDir("checkpoints");

for (const [name, adapter] of [
  ["base", null],
  ["tuned", trained],
] as const) {
  const [evaluator] = Evaluator.fromCheckpoint(microWorld(), {
    name,
    adapter,
    openModel: openCheckpoint,
    tasks,
    suite: village("suite.yaml"),
    results,
    smoke: isShort, // 10 documents of each task
  });
  const { run } = await evaluator.run(); // a finished run is not repeated
  console.log(name, run.metrics);
}
console.log(`The table: npx periodic-eval report ${results} --baseline base`);
