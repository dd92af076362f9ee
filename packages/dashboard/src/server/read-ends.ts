import { join } from "node:path/posix";
import { readIfPresent, readRun } from "@periodic-eval/store";
import { grouped, type RunRecord } from "@periodic-eval/contracts";
import { evenly } from "../page-data/run-data.ts";
import type { ContainedFiles } from "./contained-files.ts";

/** A line of `index.jsonl`, without the fields that lists do not need. */
interface IndexLine {
  readonly file: string;
  readonly phase: string;
  readonly id: string;
}

/**
 * Reads the ends of a run's last phase, however many snapshots the run has. Verifies these snapshots by their own hashes; the others
 * are verified when the run is opened.
 *
 * @returns Null for a run that has to be read in full: it has no index, or one of its ends is missing or damaged.
 */
export async function readEnds(
  path: string,
  lines: RunLines,
  files: ContainedFiles,
): Promise<RunRecord | null> {
  const last = lines.at(-1);
  if (last === undefined) return null;
  const ofPhase = lines.filter(({ phase }) => phase === last.phase);
  const ends = byCallback(ofPhase).flatMap((ofId) => [ofId[0]!, ofId.at(-1)!]);
  return readSome(path, ends, files);
}

/** Number of measurements in a sample: evenly spaced ones of all callbacks together, and the newest. */
const [spacedMeasurements, newestMeasurements] = [240, 50];

/**
 * Reads a sample of a run's measurements: for each callback in each phase the first, the last and evenly spaced ones between, and the
 * newest of the run. Verifies them by their own hashes.
 *
 * @returns Null for a run that has to be read in full, as `readEnds`.
 */
export async function readSample(
  path: string,
  lines: RunLines,
  files: ContainedFiles,
): Promise<RunRecord | null> {
  const groups = byCallback(lines);
  const count = Math.max(2, Math.floor(spacedMeasurements / groups.length));
  const spaced = groups.flatMap((group) => evenly(group, count));
  return readSome(path, [...spaced, ...lines.slice(-newestMeasurements)], files);
}

const byCallback = (lines: RunLines): readonly RunLines[] => [
  ...grouped(lines, ({ phase, id }) => JSON.stringify([phase, id])).values(),
];

/** Reads a run as if it had only these snapshots; null if one of them is missing or damaged. */
async function readSome(path: string, lines: RunLines, files: ContainedFiles): Promise<RunRecord | null> {
  const names = new Set(lines.map(({ file }) => file));
  const view = onlyFiles(join(path, "periodic_eval"), [...names], files);
  const run = await readRun(path, view, { rows: false });
  const count = run.phases.reduce((sum, { snapshots }) => sum + snapshots.length, 0);
  return run.problems.length > 0 || count < names.size ? null : run;
}

/** The lines of a run's index. */
export type RunLines = readonly IndexLine[];

/** Returns the lines of a run's index that name a snapshot; none without an index. */
export async function readIndexLines(path: string, files: ContainedFiles): Promise<RunLines> {
  const text = await readIfPresent(join(path, "periodic_eval", "index.jsonl"), files).catch(() => null);
  return (text ?? "").split("\n").flatMap(parseLine);
}

function parseLine(line: string): RunLines {
  try {
    const { file, phase, id } = JSON.parse(line) as Partial<IndexLine>;
    return file === undefined || phase === undefined || id === undefined ? [] : [{ file, phase, id }];
  } catch {
    return [];
  }
}

/** Returns a view of a run's folder that has only these snapshots, without the training curves. */
function onlyFiles(root: string, names: readonly string[], files: ContainedFiles): ContainedFiles {
  return {
    ...files,
    async list(folder) {
      const rests = names.flatMap((name) => {
        const path = join(root, name);
        return path.startsWith(`${folder}/`) ? [path.slice(folder.length + 1)] : [];
      });
      const entries = rests.map((rest) => ({ name: rest.split("/")[0]!, isFolder: rest.includes("/") }));
      return [...new Map(entries.map((entry) => [entry.name, entry])).values()];
    },
  };
}
