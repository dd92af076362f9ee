import { Option, type Command } from "commander";
import { join } from "node:path";
import { backendOption, integer } from "../../config/command-options.ts";
import { serveFlag, type ServeOption } from "../../run/serve-run.ts";
import { microWorld } from "../../demo/micro-world.ts";
import type { Terminal } from "../../terminal/terminal.ts";

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
    .description("fine-tune the embedded model in two phases, measure it live, and draw the page")
    .option("--run-dir <folder>", "folder of the run (default: runs/demo-<UTC time>)")
    .addOption(
      new Option(
        "--model <folder>",
        "another model: a folder, or owner/name on the Hugging Face Hub",
      ).default(microWorld(), "the embedded model"),
    )
    .option("--seed <number>", "seed of shuffling and measuring", integer(0), 42)
    .option("--steps <number>", "optimizer steps of each phase", integer(1), 80)
    .option(
      "--control",
      "train the second phase on harmless advice of the same length, after which alignment should not be worse",
      false,
    )
    .addOption(backendOption())
    .option(...serveFlag)
    .option("--json", "print one JSON document", false)
    .action(async (options: Omit<DemoOptions, "runDir"> & Partial<DemoOptions>) => {
      const { runDemo } = await import("./run.ts");
      await runDemo({ runDir: defaultRunDir(), ...options }, terminal);
    });
}

/** Returns `runs/demo-20260301T101500Z`, relative to the working directory. */
function defaultRunDir(): string {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  return join("runs", `demo-${stamp}`);
}
