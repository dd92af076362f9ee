import { join } from "#platform";
import {
  type Layout,
  type RunProblem,
  type Snapshot,
  type SnapshotKey,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import {
  inRunOrder,
  keyText,
  fileName,
  keyFromName,
  looksLikeSnapshot,
  runPaths,
  samplesPath,
  snapshotName,
  snapshotPaths,
} from "./layout.ts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { errnoOf, type FileReader, type FileSystem } from "../files/file-system.ts";
import { listIfPresent, readIfPresent } from "../files/read-file.ts";
import { parseSealed, readRowsText, type FoundSnapshot } from "./snapshot-file.ts";

export interface Scan {
  /** In run order, without unreadable and edited snapshots. */
  readonly found: readonly FoundSnapshot[];
  readonly problems: readonly RunProblem[];
}

/** Reads all snapshots under `periodic_eval/`, in either layout, and verifies them by their hashes; not their rows. */
export async function scanSnapshots(root: string, fs: FileReader): Promise<Scan> {
  const sound: FoundSnapshot[] = [];
  const problems: RunProblem[] = [];
  const damaged: (readonly [string, unknown])[] = [];
  for (const path of await snapshotFiles(root, fs)) {
    const file = fileName(root, path);
    try {
      const { snapshot, edited } = parseSealed(await fs.read(path), path);
      if (edited === null) sound.push({ path, snapshot });
      else {
        const { phase, id, step, crossed } = snapshot;
        const key = { phase, id, step };
        problems.push(problemOf({ file, kind: "edited", key, ...edited }, crossed.includes("start")));
      }
    } catch (error) {
      if (errnoOf(error) === "ENOENT") continue; // moved since the folder was listed
      damaged.push([file, error]);
    }
  }
  const phases = new Set(sound.map(({ snapshot }) => snapshot.phase));
  for (const [file, error] of damaged) problems.push(unreadable(file, keyFromName(file, phases), error));
  const originals = new Map<string, FoundSnapshot>();
  for (const entry of sound) {
    const key = keyText(entry.snapshot);
    // A copy must not take the place of the original.
    if (!originals.has(key) || isNamedByStore(root, entry)) originals.set(key, entry);
  }
  const bySnapshot = new Map([...originals.values()].map((entry) => [entry.snapshot, entry]));
  return { found: inRunOrder([...bySnapshot.keys()]).map((snapshot) => bySnapshot.get(snapshot)!), problems };
}

type Found = Pick<RunProblem, "file" | "kind" | "key" | "got" | "expected">;

/** Kinds whose file is not used as a snapshot. */
const invalidKinds: readonly RunProblem["kind"][] = ["unreadable", "edited"];

/**
 * Returns a problem with its effect on the run.
 *
 * @param isStart Whether the measurement is its phase's start, by its thresholds. Default: whether it is at step 0.
 */
function problemOf(problem: Found, isStart = problem.key?.step === 0): RunProblem {
  const effect = effectOf(problem, isStart);
  const { got, expected, kind } = problem;
  return {
    ...problem,
    effect,
    message: `got ${got}, expected ${expected}; ${effect}`,
    invalid: invalidKinds.includes(kind),
  };
}

function effectOf({ kind, key }: Found, isStart: boolean): string {
  if (kind === "unavailable") return "it is not verified";
  if (key !== null && isBaseline(key, isStart))
    return `baseline of "${key.phase}" lost: verdicts of "${key.id}" compare with nothing`;
  return kind === "rows" ? "its metrics stand, but it is compared with nothing" : "this measurement is lost";
}

/** Whether later measurements are compared with this one. */
const isBaseline = ({ id }: SnapshotKey, isStart: boolean): boolean => isStart || id.endsWith(".adapter_off");

/** Whether the store writes a snapshot to this path, in either layout. */
const isNamedByStore = (root: string, { path, snapshot }: FoundSnapshot): boolean =>
  (["nested", "flat"] as const).some((layout) => snapshotPaths(root, layout, snapshot).includes(path));

function unreadable(file: string, key: SnapshotKey | null, error: unknown): RunProblem {
  const expected = "a snapshot";
  // Node's RangeErrors about files have a code.
  if (error instanceof RangeError && errnoOf(error) === null)
    return problemOf({ file, kind: "unreadable", key, got: "JSON that is nested too deeply", expected });
  if (!PeriodicEvalError.is(error))
    return problemOf({ file, kind: "unavailable", key, got: errorMessage(error), expected });
  const { got, expected: right } = error;
  const problem = problemOf({ file, kind: "unreadable", key, got, expected: right });
  return { ...problem, message: `${error.message} Effect: ${problem.effect}.` };
}

async function snapshotFiles(root: string, fs: FileReader): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const { name, isFolder } of await listIfPresent(root, fs)) {
    if (!isFolder && looksLikeSnapshot(name)) paths.push(join(root, name));
    if (!isFolder || name === "superseded" || !/^(?!\.).*$/.test(name)) continue;
    const inside = await listIfPresent(join(root, name), fs);
    paths.push(
      ...inside
        .filter((file) => !file.isFolder && looksLikeSnapshot(file.name))
        .map((file) => join(root, name, file.name)),
    );
  }
  return paths.sort();
}

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
  entries: readonly FoundSnapshot[],
  fs: FileReader,
): Promise<readonly RunProblem[]> {
  const problems: RunProblem[] = [];
  for (const { path, snapshot } of entries) {
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

/** Finds the files of snapshots by key and remembers them, so that most searches read one file. */
export function snapshotFinder(root: string, layout: Layout, fs: FileSystem) {
  let paths = new Map<string, string>();

  function rememberAll(entries: readonly FoundSnapshot[]): void {
    paths = new Map(entries.map(({ path, snapshot }) => [keyText(snapshot), path]));
  }

  async function scan(): Promise<readonly FoundSnapshot[]> {
    const { found } = await scanSnapshots(root, fs);
    rememberAll(found);
    return found;
  }

  return {
    scan,
    rememberAll,
    remember(key: SnapshotKey, path: string): void {
      paths.set(keyText(key), path);
    },
    /**
     * Returns a snapshot and its path, or null.
     *
     * @param isLocked Whether this process holds the run's lock. All snapshots are then remembered, because no other process
     *   writes.
     */
    async find(key: SnapshotKey, isLocked: boolean): Promise<FoundSnapshot | null> {
      const known = paths.get(keyText(key));
      const candidates = [...(known === undefined ? [] : [known]), ...snapshotPaths(root, layout, key)];
      for (const path of candidates) {
        const snapshot = await readIfItIs(key, path, fs);
        if (snapshot !== null) return { path, snapshot };
      }
      if (isLocked && known === undefined) return null;
      return (await scan()).find(({ snapshot }) => keyText(snapshot) === keyText(key)) ?? null;
    },
    /**
     * Returns the path to write a snapshot to: the remembered one, or the first path of the layout without a file of another
     * snapshot. A write that failed after its rename leaves a file that is not remembered.
     *
     * @throws PeriodicEvalError `store` if other snapshots have all its names.
     */
    async pathToWrite(key: SnapshotKey): Promise<string> {
      const known = paths.get(keyText(key));
      if (known !== undefined) return known;
      for (const path of snapshotPaths(root, layout, key)) {
        const text = await readIfPresent(path, fs);
        if (text === null || (await readIfItIs(key, path, fs)) !== null) return path;
      }
      throw new PeriodicEvalError({
        code: "store",
        where: root,
        got: `a file of another snapshot named ${snapshotName(key)}.json`,
        expected: `a free name for ${keyText(key)}`,
        fix: "Use the nested layout, or names that differ by more than case.",
      });
    },
  };
}

/** Returns the snapshot at `path` if it has this key. */
async function readIfItIs(key: SnapshotKey, path: string, fs: FileSystem): Promise<Snapshot | null> {
  const text = await readIfPresent(path, fs);
  const snapshot = text === null ? null : soundSnapshot(text, path);
  return snapshot !== null && keyText(snapshot) === keyText(key) ? snapshot : null;
}

/** Parses a snapshot. A damaged or edited one counts as absent: the next opening moves it away. */
function soundSnapshot(text: string, path: string): Snapshot | null {
  try {
    const { snapshot, edited } = parseSealed(text, path);
    return edited === null ? snapshot : null;
  } catch {
    return null;
  }
}
