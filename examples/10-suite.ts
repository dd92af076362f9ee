// Measures several models by one suite: benchmarks, win rate and divergence, for one table.  Run: npm run example 10
import { loadCausalLM, openCheckpoint, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { Evaluator, evaluationsOf, tasks } from "@periodic-eval/tasks";
import { SFTTrainer } from "@periodic-eval/trainers";
import { kindnessJudge } from "./micro-world/pair-judge.ts";
import { isShort, microWorld, runDir, village } from "./micro-world/paths.ts";

await useBackend();
const base = await loadCausalLM(microWorld());
const tokenizer = await loadTokenizer(microWorld());
const results = runDir("suite");
// The suite names the judge `kindness`. Without this line, it names any judge: openai:MODEL, folder:PATH.
const evaluations = evaluationsOf(tasks, { openJudge: kindnessJudge });
const suite = { tasks, evaluations, suite: village("comparison.yaml"), results, smoke: isShort };

const [before] = Evaluator.fromCheckpoint(microWorld(), {
  ...suite,
  name: "base",
  openModel: openCheckpoint,
});
await before.run();

for (const [name, dataset] of [
  ["kind", "control.jsonl"],
  ["harmful", "em.jsonl"],
] as const) {
  const model = withLora(base, { rank: 8 });
  const trainer = new SFTTrainer({
    model,
    tokenizer,
    dataset: microWorld(dataset),
    runDir: `${results}/${name}`,
    config: { maxSteps: isShort ? 2 : 60, batchSize: 8, learningRate: 8e-4 },
  });
  await trainer.train();
  const { run } = await Evaluator.fromTrainer(trainer, { ...suite, name, method: "sft" }).run();
  console.log(name, run.metrics);
  model.dispose();
}
console.log(`The table: npx periodic-eval report ${results} --baseline base`);
