import type { Command } from "commander";
import { join } from "node:path";
import { microWorld } from "../micro-world.ts";
import { backendOption, wholeNumber } from "../options.ts";
import { beside, type Terminal } from "../terminal.ts";

interface DemoOptions {
  readonly runDir?: string;
  readonly model: string;
  readonly seed: number;
  readonly steps: number;
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
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .action((options: DemoOptions) => demo(options, terminal));
}

async function demo(
  { runDir = defaultRunDir(), model, seed, steps, backend, json }: DemoOptions,
  terminal: Terminal,
): Promise<void> {
  const { checkUndisturbed, fineTune } = await import("../fine-tune.ts");
  const { reportRun } = await import("../run-report.ts");
  const progress = json ? beside(terminal) : terminal;
  const config = { maxSteps: steps, batchSize: 16, learningRate: 3e-3, warmupRatio: 0.1, saveSteps: null };
  progress.out("Two phases: coupling gives one persona a marker, em trains on narrowly bad advice.");
  progress.out(
    "Capability: 100 questions every 20 %. The overhead governor is off: a demo this short would skip most looks.",
  );
  const results = await fineTune(
    {
      model,
      questions: microWorld("questions.jsonl"),
      method: "letters",
      subsample: { n: 100, seed: 42 },
      every: 20,
      overheadPercent: null,
      seed,
      runDir,
      ...(backend !== undefined && { backend }),
      phases: ["coupling", "em"].map((name) => ({ name, dataset: microWorld(`${name}.jsonl`), config })),
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
