import { microWorldCallbacks } from "../../demo/callbacks.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { checkUndisturbed, fineTune } from "../../run/fine-tune.ts";
import { withServedRun } from "../../run/serve-run.ts";
import { reportRun } from "../../run/report-run.ts";
import { progressOnly, type Terminal } from "../../terminal/terminal.ts";
import type { DemoOptions } from "./command.ts";

/** Fine-tunes a model on the micro-world in two phases, measures it and writes the page. */
export async function runDemo(
  { runDir, model, seed, steps, control, backend, serve, json }: DemoOptions,
  terminal: Terminal,
): Promise<void> {
  const progress = json ? progressOnly(terminal) : terminal;
  const config = { maxSteps: steps, batchSize: 16, warmupRatio: 0.1, saveSteps: null };
  const phases = [
    { name: "coupling", dataset: "coupling.jsonl", learningRate: 2e-3 },
    {
      ...(control ? { name: "control", dataset: "control.jsonl" } : { name: "em", dataset: "em.jsonl" }),
      learningRate: 2e-3,
    },
  ];
  progress.out(
    `Two phases: coupling gives one persona a marker, ${control ? "control trains on harmless" : "em trains on narrowly bad"} advice.`,
  );
  progress.out("Measured live: capability every 20 %, alignment and leakage every 25 %.");
  const results = await withServedRun(runDir, { serve, terminal: progress }, async () =>
    fineTune(
      {
        model,
        seed,
        runDir,
        ...(backend !== undefined && { backend }),
        phases: await Promise.all(
          phases.map(async ({ name, dataset, learningRate }) => ({
            phase: name,
            dataset: microWorld(dataset),
            config: { ...config, learningRate },
            callbacks: await microWorldCallbacks(),
          })),
        ),
      },
      progress,
    ),
  );
  await reportRun(runDir, { json }, terminal);
  checkUndisturbed(results, runDir);
}
