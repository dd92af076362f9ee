import { readRun } from "@periodic-eval/store";
import { type RunProblem } from "@periodic-eval/contracts";
import { noSnapshot } from "../../run/warn-of-problems.ts";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";

/** Counts of files by what verifying found. */
interface Counts {
  readonly verified: number;
  readonly problems: number;
}

export interface VerifiedRun {
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
export async function verifyRun(runDir: string): Promise<VerifiedRun> {
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

export function verifyTable({ snapshots, rows, problems }: VerifiedRun, colours: Colours): string {
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

export const verifyJson = ({ runDir, snapshots, rows, problems }: VerifiedRun): string =>
  JSON.stringify({ run_dir: runDir, snapshots, rows, problems }, null, 2);
