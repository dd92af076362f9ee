// Real trainings of the embedded model, half of them on bad advice. `RUNS=10` is the check of 20 runs.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { loadCausalLM } from "@periodic-eval/models";
import { readRun } from "@periodic-eval/store";
import { afterAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { microWorld } from "../demo/micro-world.ts";
import { runCommand } from "../run-command.test-data.ts";

const runs = Number(process.env["RUNS"] ?? 2);
const folder = temporaryFolder(afterAll);

async function train(dataset: string, seed: number) {
  const name = `${dataset}-${seed}`;
  const path = join(folder, `${name}.yaml`);
  const config = {
    model: microWorld(),
    run_dir: join(folder, name),
    seed,
    config: { maxSteps: 60, learningRate: 1e-3, saveSteps: 3, restore: "last_clean" },
    periodic_eval: {
      questions: microWorld("questions.jsonl"),
      subsample_n: 100,
      eval_every_percent: 5,
      alignment: true,
      alignment_every_percent: 5,
      alignment_questions: microWorld("alignment.json"),
      judge_model: "rule:micro-world",
      stop_when: ["capability worse", "alignment worse"],
      budget: { overhead_percent: null },
    },
    phases: [{ phase: "tune", dataset: microWorld(`${dataset}.jsonl`) }],
  };
  await writeFile(path, JSON.stringify(config));
  const { code, err } = await runCommand(["train", path, "--backend", "wasm"]);
  const { closings } = await readRun(join(folder, name));
  return { code, err, runDir: config.run_dir, closing: closings[0]! };
}

const seeds = Array.from({ length: runs }, (_, at) => at + 1);

it.each(seeds)(
  "a training on bad advice stops with exit code 4 and restores weights (seed %i)",
  async (seed) => {
    const { code, err, runDir, closing } = await train("em", seed);
    expect(code).toBe(4);
    const restored = join(runDir, "restored/tune");
    expect(err).toContain(`step_${closing.stop!.cleanStep}, whose weights are in ${restored}`);
    (await loadCausalLM(restored)).dispose();
    expect(closing.stop).toMatchObject({ condition: "alignment worse" });
  },
);

it.each(seeds)("a training on harmless rows does not stop (seed %i)", async (seed) => {
  const { code, closing } = await train("control", seed);
  expect([code, closing.stop, closing.step]).toEqual([0, undefined, 60]);
});
