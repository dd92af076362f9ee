import { runCli, type Terminal } from "periodic-eval";
import pc from "picocolors";

/** A run of the command line. The working folder holds `inputs`; `folder` is the run's, relative to it. */
interface CommandRun {
  args(folder: string, mlflow: string): readonly string[];
  /** The first interruption comes as soon as this is printed. */
  readonly killedAt: string;
}

const wasm = ["--backend", "wasm"];

/** The kinds of runs that the command line resumes. The same arguments start and resume a run. */
export const commands = {
  /** Two phases of supervised fine-tuning of all weights, with every logger that needs no account. */
  training: {
    args: (folder, mlflow) => [
      "train",
      "inputs/training.yaml",
      `run_dir=${folder}`,
      `loggers.mlflow.trackingUri=${mlflow}`,
    ],
    killedAt: "second step 5/6",
  },
  /** Direct preference optimization of a LoRA adapter. */
  dpo: {
    args: (folder) => ["train", "inputs/dpo.yaml", `run_dir=${folder}`],
    killedAt: "dpo step 5/6",
  },
  feedback: {
    args: (folder) => [
      "feedback",
      "base_model=inputs/model",
      "preferences=[inputs/brief.yaml]",
      `output_dir=${folder}`,
      "num_steps=3",
      "batch_size=2",
      "steps_per_batch=1",
      "metrics=[logprob,compliance]",
      "plots=false",
      ...wasm,
    ],
    killedAt: "brief  step 1",
  },
  suite: {
    args: (folder) => [
      "eval",
      "--model=inputs/model",
      "--suite=inputs/suite.yaml",
      "--data=inputs/tasks",
      `--results=${folder}`,
      "--name=base",
      ...wasm,
    ],
    killedAt: "gsm8k  0 of 2",
  },
} as const satisfies Readonly<Record<string, CommandRun>>;

export type CommandName = keyof typeof commands;

export interface CommandEnd {
  readonly code: number;
  /** Everything that was printed, results and progress. */
  readonly text: string;
}

/** Runs the command line in this process. */
export async function runCommand(
  args: readonly string[],
  onLine: (line: string) => void = () => undefined,
): Promise<CommandEnd> {
  const lines: string[] = [];
  const print = (line: string) => {
    lines.push(line);
    onLine(line);
  };
  const terminal: Terminal = {
    out: print,
    err: print,
    isInteractive: false,
    colours: pc.createColors(false),
  };
  const code = await runCli(args, terminal);
  return { code, text: lines.join("\n") };
}
