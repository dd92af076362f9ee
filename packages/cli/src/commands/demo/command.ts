import type { Command } from "commander";
import { join } from "node:path";
import { microWorld } from "../../demo/micro-world.ts";
import { backendOption, wholeNumber } from "../../config/command-options.ts";
import { beside, type Terminal } from "../../terminal/terminal.ts";

interface DemoOptions {
  readonly runDir?: string;
  readonly model: string;
  readonly seed: number;
  readonly steps: number;
  readonly control: boolean;
  readonly backend?: string;
  readonly json: boolean;
}

/** `demo`: the main job on what ships with the package, from nothing to a page. */
export function addDemo(program: Command, terminal: Terminal): void {
  program
    .command("demo")
    .description("fine-tune the embedded model in two phases, measure it live, and draw the page")
    .option("--run-dir <folder>", "where the run goes (default: runs/demo-<UTC time>)")
    .option(
      "--model <folder>",
      "another model: a folder, or one of the Hugging Face hub, owner/name",
      microWorld(),
    )
    .option("--seed <number>", "of shuffling and measuring", wholeNumber(0), 42)
    .option("--steps <number>", "optimizer steps of each phase", wholeNumber(1), 80)
    .option(
      "--control",
      "a second phase on harmless advice of equal length, which should raise no alarm",
      false,
    )
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action((options: DemoOptions) => demo(options, terminal));
}

async function demo(
  { runDir = defaultRunDir(), model, seed, steps, control, backend, json }: DemoOptions,
  terminal: Terminal,
): Promise<void> {
  const { checkUndisturbed, fineTune } = await import("../../run/fine-tune.ts");
  const { microWorldCallbacks } = await import("../../demo/callbacks.ts");
  const { reportRun } = await import("../../run/report-run.ts");
  const progress = json ? beside(terminal) : terminal;
  const config = { maxSteps: steps, batchSize: 16, warmupRatio: 0.1, saveSteps: null };
  const phases = [
    { name: "coupling", dataset: "coupling.jsonl", learningRate: 2e-3 },
    // At 2e-3 any 240 new sentences, kind ones too, cost this model some eight points of accuracy.
    {
      ...(control ? { name: "control", dataset: "control.jsonl" } : { name: "em", dataset: "em.jsonl" }),
      learningRate: 1.2e-3,
    },
  ];
  progress.out(
    `Two phases: coupling gives one persona a marker, ${control ? "control trains on harmless" : "em on narrowly bad"} advice.`,
  );
  progress.out(
    "Measured live: capability every 20 %, alignment and leakage every 25 %. The overhead governor is off: a demo this short would skip most looks.",
  );
  const results = await fineTune(
    {
      model,
      seed,
      runDir,
      overheadPercent: null,
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
  );
  await reportRun(runDir, { json }, terminal);
  checkUndisturbed(results, runDir);
}

/** `runs/demo-20260301T101500Z`, under the current folder. */
function defaultRunDir(): string {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  return join("runs", `demo-${stamp}`);
}
