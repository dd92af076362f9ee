import type { RunProblem } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import type { FileReader } from "../files/file-system.ts";
import { fileName, runPaths, samplesPath } from "./layout.ts";
import { problemOf } from "./problem.ts";
import { scanSnapshots, type Scan } from "./scan-snapshots.ts";
import { readRowsText, type FoundSnapshot } from "./snapshot-file.ts";

export interface InspectOptions {
  /** Whether to read and verify the rows. Default true. */
  readonly rows?: boolean;
}

/** Reads all snapshots of a run and verifies them and their rows. Takes no lock and changes nothing. */
export async function inspectRun(
  runDir: string,
  fs: FileReader,
  { rows = true }: InspectOptions = {},
): Promise<Scan> {
  const { root } = runPaths(runDir);
  const { found, problems } = await scanSnapshots(root, fs);
  return { found, problems: rows ? [...problems, ...(await damagedRows(root, found, fs))] : problems };
}

async function damagedRows(
  root: string,
  found: readonly FoundSnapshot[],
  fs: FileReader,
): Promise<readonly RunProblem[]> {
  const problems: RunProblem[] = [];
  for (const { path, snapshot } of found) {
    const { phase, id, step, crossed, samples } = snapshot;
    const about = { file: fileName(root, samplesPath(path)), key: { phase, id, step } };
    try {
      const { damage } = await readRowsText(path, samples, fs);
      if (damage === null) continue;
      const { where, got, expected } = damage;
      const line = /:(\d+)$/.exec(where)?.[1];
      const what = line === undefined ? got : `${got} (line ${line})`;
      problems.push(problemOf({ ...about, kind: "rows", got: what, expected }, crossed.includes("start")));
    } catch (error) {
      const got = errorMessage(error);
      problems.push(problemOf({ ...about, kind: "unavailable", got, expected: "rows that can be read" }));
    }
  }
  return problems;
}
