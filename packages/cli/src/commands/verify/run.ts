import { PeriodicEvalError } from "@periodic-eval/core";
import { readRun, type RunProblem } from "@periodic-eval/core/snapshots";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";

/** Counts of files by what verifying found. */
interface Counts {
  readonly verified: number;
  /** Files of an older version, without a hash. */
  readonly notVerifiable: number;
  readonly problems: number;
}

export interface VerifiedRun {
  readonly runDir: string;
  readonly snapshots: Counts;
  readonly rows: Counts;
  readonly problems: readonly RunProblem[];
}

/**
 * Verifies all snapshots, rows and the index of a run.
 *
 * @throws PeriodicEvalError `data` for a folder without snapshots that no checkpoint misses either.
 */
export async function verifyRun(runDir: string): Promise<VerifiedRun> {
  const run = await readRun(runDir);
  const found = run.phases.flatMap(({ snapshots }) => snapshots);
  if (found.length === 0 && run.problems.length === 0) {
    throw new PeriodicEvalError({
      code: "data",
      where: runDir,
      got: "no snapshot",
      expected: "snapshots under periodic_eval/",
      fix: "Name the run_dir of a run.",
    });
  }
  const { problems } = run;
  const bad = (kinds: readonly RunProblem["kind"][]) => problems.filter(({ kind }) => kinds.includes(kind));
  const badRows = new Set(bad(["rows"]).map(({ key }) => keyOf(key!)));
  const badValues = new Set(bad(["implausible"]).map(({ key }) => keyOf(key!)));
  const samples = found.filter((one) => one.samples !== null && !badRows.has(keyOf(one)));
  const snapshots = found.filter((one) => !badValues.has(keyOf(one)));
  return {
    runDir,
    snapshots: {
      ...countHashes(snapshots.map(({ sha256 }) => sha256)),
      problems: badValues.size + bad(badFiles).length,
    },
    rows: { ...countHashes(samples.map((one) => one.samples?.sha256)), problems: badRows.size },
    problems,
  };
}

const badFiles = ["unreadable", "edited", "missing", "duplicate", "misplaced", "unlisted"] as const;

const keyOf = ({ phase, id, step }: NonNullable<RunProblem["key"]>): string => `${phase}/${id}/${step}`;

function countHashes(hashes: readonly (string | undefined)[]): Omit<Counts, "problems"> {
  const verified = hashes.filter((hash) => hash !== undefined).length;
  return { verified, notVerifiable: hashes.length - verified };
}

export function verifyTable({ snapshots, rows, problems }: VerifiedRun, colours: Colours): string {
  const row = (name: string, counts: Counts) => [
    name,
    String(counts.verified),
    String(counts.notVerifiable),
    String(counts.problems),
  ];
  const index = problems.some(({ kind }) => kind === "index") ? "problem" : "verified";
  const older = snapshots.notVerifiable + rows.notVerifiable;
  return [
    plainTable(
      [{ words: "files" }, "verified", "not verifiable", "problems"],
      [row("snapshots", snapshots), row("rows", rows)],
      colours,
    ),
    `index: ${index}`,
    ...(older === 0 ? [] : [`${older} files are of an older version, without hashes`]),
    ...problems.map(({ file, message }) => `${file}: ${message}`),
  ].join("\n");
}

const countsJson = ({ verified, notVerifiable, problems }: Counts) => ({
  verified,
  not_verifiable: notVerifiable,
  problems,
});

export const verifyJson = ({ runDir, snapshots, rows, problems }: VerifiedRun): string =>
  JSON.stringify(
    { run_dir: runDir, snapshots: countsJson(snapshots), rows: countsJson(rows), problems },
    null,
    2,
  );
