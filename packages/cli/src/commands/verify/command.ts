import { statSync } from "node:fs";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { RunProblem } from "@periodic-eval/contracts";
import { readRun } from "@periodic-eval/store";
import type { Command } from "commander";
import { backendOption, flagsOf } from "../../config/command-options.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import { noSnapshot } from "../../run/read-runs.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";
import type { RepeatOptions } from "./repeat.ts";

const help = `
A snapshot can be measured again if its run has saveAdapterAtFiring: true.

Exit code: 0 if all is verified or the same, 1 if not, 2 for wrong usage.`;

/** `verify`: checks every snapshot of a run and its rows against their hashes, or repeats one measurement. It changes nothing. */
export function addVerify(program: Command, terminal: Terminal, loadTasks: LoadTasks): void {
  program
    .command("verify")
    .description("check a run for damage and edits, or repeat the measurement of a snapshot")
    .argument("<path>", "a run's folder, or a snapshot: <run-dir>/periodic_eval/…/*.json")
    .option("--model <folder>", "for a snapshot: the trained model (default: the run's)")
    .option("--config <file>", "for a snapshot: the run's periodic_eval block (default: train.yaml)")
    .addOption(backendOption())
    .option("--json", "print one JSON document", false)
    .addHelpText("after", help)
    .action(async (path: string, options: RepeatOptions, command: Command) => {
      const { json, ...forSnapshot } = options;
      if (isFile(path)) {
        const { repeatMeasurement } = await import("./repeat.ts");
        return repeatMeasurement(path, options, { terminal, loadTasks });
      }
      const [misplaced] = Object.keys(forSnapshot);
      if (misplaced !== undefined)
        command.error(`error: option '${flagsOf(command, misplaced)}' is for a snapshot, not for a run`);
      const runDir = path;
      const verified = await verifyRun(runDir);
      terminal.out(json ? verifyJson(verified) : verifyTable(verified, terminal.colours));
      const { length } = verified.problems;
      if (length === 0) return;
      throw new PeriodicEvalError({
        code: "store",
        where: runDir,
        got: `${length} ${length === 1 ? "problem" : "problems"}`,
        expected: "snapshots and rows as they were written",
        fix: "Restore the files from a copy, or resume the run: it measures again what the model still can.",
      });
    });
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/** Counts of files by what verifying found. */
interface Counts {
  readonly verified: number;
  readonly problems: number;
}

interface VerifiedRun {
  readonly runDir: string;
  readonly snapshots: Counts;
  readonly rows: Counts;
  readonly problems: readonly RunProblem[];
}

/**
 * Verifies all snapshots and rows of a run.
 *
 * @throws PeriodicEvalError `data` for a folder without snapshots.
 */
async function verifyRun(runDir: string): Promise<VerifiedRun> {
  const run = await readRun(runDir);
  const snapshots = run.phases.flatMap(({ snapshots }) => snapshots);
  if (snapshots.length === 0 && run.problems.length === 0) throw noSnapshot(runDir);
  const { problems } = run;
  const bad = (kinds: readonly RunProblem["kind"][]) => problems.filter(({ kind }) => kinds.includes(kind));
  const badRows = new Set(bad(["rows"]).map(({ key }) => keyOf(key!)));
  const samples = snapshots.filter((snapshot) => snapshot.samples !== null && !badRows.has(keyOf(snapshot)));
  return {
    runDir,
    snapshots: {
      verified: snapshots.length,
      problems: bad(["unreadable", "edited"]).length,
    },
    rows: { verified: samples.length, problems: badRows.size },
    problems,
  };
}

const keyOf = ({ phase, id, step }: NonNullable<RunProblem["key"]>): string => `${phase}/${id}/${step}`;

function verifyTable({ snapshots, rows, problems }: VerifiedRun, colours: Colours): string {
  const row = (name: string, counts: Counts) => [name, String(counts.verified), String(counts.problems)];
  return [
    plainTable(
      [{ words: "files" }, "verified", "problems"],
      [row("snapshots", snapshots), row("rows", rows)],
      colours,
    ),
    ...problems.map(({ file, message }) => `${file}: ${message}`),
  ].join("\n");
}

const verifyJson = ({ runDir, snapshots, rows, problems }: VerifiedRun): string =>
  jsonText({ run_dir: runDir, snapshots, rows, problems });
