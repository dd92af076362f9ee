import { join } from "node:path";
import { Option, type Command } from "commander";
import { backendOption, integer } from "../../config/command-options.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { serveFlag, type ServeOption } from "../../run/serve-run.ts";
import { type Terminal, progressOnly } from "../../terminal/terminal.ts";
import { train } from "../train/command.ts";

interface DemoOptions {
  readonly runDir?: string;
  readonly model?: string;
  readonly seed: number;
  readonly steps: number;
  readonly control: boolean;
  readonly backend?: string;
  readonly serve?: ServeOption;
  readonly json: boolean;
}

/** `demo`: trains as `demo.yaml` of the embedded model describes it. Everything that it needs ships with the package. */
export function addDemo(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("demo")
    .description("fine-tune the embedded model in two phases, measure it live and draw the page")
    .option("--run-dir <folder>", "folder of the run (default: runs/demo-<UTC time>)")
    .addOption(new Option("--model <folder>", "another model: a folder, or owner/name on the Hub"))
    .option("--seed <number>", "seed of shuffling and measuring", integer(0), 42)
    .option("--steps <number>", "optimizer steps of each phase", integer(1), 80)
    .option("--control", "train on harmless advice: alignment should not get worse", false)
    .addOption(backendOption())
    .option(...serveFlag)
    .option("--json", "print one JSON document", false)
    .action(({ runDir = defaultRunDir(), ...options }: DemoOptions) => {
      const { control, json } = options;
      const progress = json ? progressOnly(terminal) : terminal;
      progress.out(
        `Two phases: coupling gives one persona a marker, ${control ? "control trains on harmless" : "em trains on narrowly bad"} advice.`,
      );
      progress.out("Measured live: capability every 20 %, alignment and leakage every 25 %.");
      const resumeCommand = `the same command with --run-dir ${runDir}`;
      return train(microWorld("demo.yaml"), overridesOf(runDir, options), {
        ...options,
        resumeCommand,
        terminal,
        loadTasks,
      });
    });
}

const overridesOf = (runDir: string, { model, seed, steps, control, backend }: DemoOptions) =>
  [
    ["--run-dir", "run_dir", runDir],
    ["--seed", "seed", seed],
    ["--steps", "config.maxSteps", steps],
    ...(model === undefined ? [] : ([["--model", "model", model]] as const)),
    ...(backend === undefined ? [] : ([["--backend", "backend", backend]] as const)),
    ...(control
      ? ([
          ["--control", "phases.1.phase", "control"],
          ["--control", "phases.1.dataset", microWorld("control.jsonl")],
        ] as const)
      : []),
  ].map(([flag, key, value]) => ({ flag: flag as string, text: `${key}=${JSON.stringify(value)}` }));

/** Returns `runs/demo-20260301T101500Z`, relative to the working directory. */
function defaultRunDir(): string {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  return join("runs", `demo-${stamp}`);
}
