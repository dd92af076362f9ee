import { PeriodicEvalError } from "@periodic-eval/core";
import type { RunProblem } from "@periodic-eval/contracts";
import { readRun } from "@periodic-eval/store";
import type { Command } from "commander";
import { noSnapshot } from "../../run/read-runs.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";

const exitCodes = `
Exit code: 0 if everything is verified, 1 with problems, 2 for wrong usage.`;

/** `verify`: checks every snapshot of a run and its rows against their hashes. It changes nothing. */
export function addVerify(program: Command, terminal: Terminal): void {
  program
    .command("verify")
    .description("check that no snapshot or row of a run was damaged or edited")
    .argument("<run-dir>", "a run's folder")
    .option("--json", "print one JSON document", false)
    .addHelpText("after", exitCodes)
    .action(async (runDir: string, { json }: { readonly json: boolean }) => {
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
  const found = run.phases.flatMap(({ snapshots }) => snapshots);
  if (found.length === 0 && run.problems.length === 0) throw noSnapshot(runDir);
  const { problems } = run;
  const bad = (kinds: readonly RunProblem["kind"][]) => problems.filter(({ kind }) => kinds.includes(kind));
  const badRows = new Set(bad(["rows"]).map(({ key }) => keyOf(key!)));
  const samples = found.filter((one) => one.samples !== null && !badRows.has(keyOf(one)));
  return {
    runDir,
    snapshots: {
      verified: found.length,
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
