import { join } from "node:path";
import { Option, type Command } from "commander";
import { backendOption, integer } from "../../config/command-options.ts";
import { microWorldCallbacks, microWorld } from "../../demo/micro-world.ts";
import { checkUndisturbed, fineTune } from "../../run/fine-tune.ts";
import { reportRun } from "../../run/report-run.ts";
import { serveFlag, type ServeOption, withServedRun } from "../../run/serve-run.ts";
import { type Terminal, progressOnly } from "../../terminal/terminal.ts";

export interface DemoOptions {
  readonly runDir: string;
  readonly model: string;
  readonly seed: number;
  readonly steps: number;
  readonly control: boolean;
  readonly backend?: string;
  readonly serve?: ServeOption;
  readonly json: boolean;
}

/** `demo`: fine-tunes the embedded model, measures it and writes the page. Everything that it needs ships with the package. */
export function addDemo(program: Command, terminal: Terminal): void {
  program
    .command("demo")
    .description("fine-tune the embedded model in two phases, measure it live and draw the page")
    .option("--run-dir <folder>", "folder of the run (default: runs/demo-<UTC time>)")
    .addOption(
      new Option("--model <folder>", "another model: a folder, or owner/name on the Hub").default(
        microWorld(),
        "the embedded model",
      ),
    )
    .option("--seed <number>", "seed of shuffling and measuring", integer(0), 42)
    .option("--steps <number>", "optimizer steps of each phase", integer(1), 80)
    .option("--control", "train on harmless advice: alignment should not get worse", false)
    .addOption(backendOption())
    .option(...serveFlag)
    .option("--json", "print one JSON document", false)
    .action((options: Omit<DemoOptions, "runDir"> & Partial<DemoOptions>) =>
      runDemo({ runDir: defaultRunDir(), ...options }, terminal),
    );
}

/** Returns `runs/demo-20260301T101500Z`, relative to the working directory. */
function defaultRunDir(): string {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  return join("runs", `demo-${stamp}`);
}

/** Fine-tunes a model on the micro-world in two phases, measures it and writes the page. */
async function runDemo(
  { runDir, model, seed, steps, control, backend, serve, json }: DemoOptions,
  terminal: Terminal,
): Promise<void> {
  const progress = json ? progressOnly(terminal) : terminal;
  const config = { maxSteps: steps, batchSize: 16, warmupRatio: 0.1, saveSteps: null, learningRate: 2e-3 };
  const phases = ["coupling", control ? "control" : "em"];
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
          phases.map(async (phase) => ({
            phase,
            dataset: microWorld(`${phase}.jsonl`),
            config,
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
