import { join } from "#platform";
import type { RunProblem, SnapshotKey } from "../../contracts/snapshot.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { grouped } from "../../statistics/grouping.ts";
import { contradictionsOf } from "../implausible.ts";
import { keyText } from "../run-order.ts";
import type { FileReader, FileSystem } from "./file-system.ts";
import { knownByCheckpoints } from "./known-by-checkpoints.ts";
import { fileName, runPaths, samplesPath, snapshotName } from "./layout.ts";
import type { Misplaced } from "./places.ts";
import { problemOf } from "./problem.ts";
import { readIfPresent } from "./read-file.ts";
import { readIndex, rebuildIndex, type IndexLine, type RunIndex } from "./run-index.ts";
import { scanSnapshots, sealOf } from "./scan-snapshots.ts";
import { readRowsText, type FoundSnapshot } from "./snapshot-file.ts";
import { readSuperseded } from "./superseded.ts";

export interface Inspection {
  /** In run order, without unreadable and edited snapshots. */
  readonly found: readonly FoundSnapshot[];
  readonly problems: readonly RunProblem[];
  /** Those of `found` whose file was renamed or exchanged with another. */
  readonly misplaced: readonly Misplaced[];
  /** Lines of the index whose snapshot is gone. */
  readonly missing: readonly IndexLine[];
}

export interface InspectOptions {
  /** Whether to read and verify the rows. Default true. */
  readonly rows?: boolean;
}

/**
 * Reads all snapshots of a run and verifies them, their rows and the index. Takes no lock and changes nothing.
 *
 * @param wasKilled Whether the last session was killed. Default: whether there is a lock.
 */
export async function inspectRun(
  runDir: string,
  fs: FileReader,
  { rows = true }: InspectOptions = {},
  wasKilled?: boolean,
): Promise<Inspection> {
  const { root, index, lock } = runPaths(runDir);
  const isLocked = async () => wasKilled ?? (await readIfPresent(lock, fs)) !== null;
  const wasLocked = await isLocked();
  const { found, problems, misplaced, index: known } = await scanSnapshots(root, fs);
  const { lines = [], brokenAt = null } = known ?? {};
  const missing = await missingLines(runDir, lines, { found, problems }, fs);
  const accounted = [...found.map(({ snapshot }) => snapshot), ...missing];
  const forgotten = await missingKeys(runDir, { accounted, problems }, fs);
  return {
    found,
    misplaced,
    missing,
    problems: [
      ...problems,
      ...(rows ? await damagedRows(root, found, fs) : []),
      ...missing.map((line) => missingSnapshot(line, line.file, "index.jsonl")),
      ...forgotten.map((key) =>
        missingSnapshot(key, `${key.phase}/${snapshotName(key)}.json`, "a checkpoint"),
      ),
      ...found.flatMap((one) => implausibleValues(root, one)),
      // A process that is killed between its first snapshot and the index leaves one snapshot without an index.
      ...(known === null && found.length > 1 ? [missingIndex()] : []),
      ...(brokenAt === null ? [] : [brokenIndex(brokenAt)]),
      ...(known === null || brokenAt !== null
        ? []
        : // Read after the snapshots, so that it has the lines of a session that runs now.
          await unlisted(root, found, await readIndex(index, fs), {
            isLocked: wasLocked || (await isLocked()),
            fs,
          })),
    ],
  };
}

/** Writes the index of a run again after a change of its snapshots, and returns them. The caller holds the run's lock. */
export async function writeIndexAgain(runDir: string, fs: FileSystem): Promise<readonly FoundSnapshot[]> {
  const { root, index } = runPaths(runDir);
  const scan = await scanSnapshots(root, fs);
  const missing = await missingLines(runDir, scan.index?.lines ?? [], scan, fs);
  await rebuildIndex(index, root, scan.found, missing, fs);
  return scan.found;
}

/** Returns the lines of the index whose snapshot is neither there, nor under another problem, nor superseded. */
async function missingLines(
  runDir: string,
  lines: readonly IndexLine[],
  { found, problems }: Pick<Inspection, "found" | "problems">,
  fs: FileReader,
): Promise<readonly IndexLine[]> {
  const there = new Set(found.map(({ snapshot }) => keyText(snapshot)));
  // A line whose phase, id or step is damaged still names the content.
  const contents = new Set(found.map(({ snapshot }) => snapshot.sha256));
  // A copy of another measurement in the place of this one does not account for it.
  const named = new Set(problems.map(({ file, key }) => `${file} ${key && keyText(key)}`));
  const candidates = lines.filter(
    (line) =>
      !there.has(keyText(line)) &&
      (line.sha256 === undefined || !contents.has(line.sha256)) &&
      !named.has(`${line.file} ${keyText(line)}`),
  );
  if (candidates.length === 0) return [];
  const superseded = await readSuperseded(runDir, fs);
  const gone: IndexLine[] = [];
  for (const ofKey of grouped(candidates, keyText).values()) {
    const moved = superseded.filter(({ key }) => key !== null && keyText(key) === keyText(ofKey[0]!));
    const hashes = await Promise.all(
      moved.map(({ file }) => sealOf(join(runPaths(runDir).superseded, file), fs)),
    );
    // A replaced snapshot has two lines until the index is written again.
    const isMoved = ofKey.some(
      ({ sha256 }) =>
        (sha256 === undefined && moved.length > 0) ||
        moved.some(({ file }, at) => file.endsWith(".damaged.json") || hashes[at] === sha256),
    );
    if (!isMoved) gone.push(ofKey.at(-1)!);
  }
  return gone;
}

/** Returns the snapshots that a checkpoint knows and that are neither there nor superseded. */
async function missingKeys(
  runDir: string,
  {
    accounted,
    problems,
  }: { readonly accounted: readonly SnapshotKey[]; readonly problems: readonly RunProblem[] },
  fs: FileReader,
): Promise<readonly SnapshotKey[]> {
  const known = await knownByCheckpoints(runDir, fs);
  if (known.length === 0) return [];
  const superseded = await readSuperseded(runDir, fs);
  const keys = [...accounted, ...problems.map(({ key }) => key), ...superseded.map(({ key }) => key)];
  const there = new Set(keys.map((key) => key && keyText(key)));
  const unique = new Map(known.map((key) => [keyText(key), key]));
  return [...unique].flatMap(([text, key]) => (there.has(text) ? [] : [key]));
}

const missingSnapshot = ({ phase, id, step }: SnapshotKey, file: string, by: string): RunProblem =>
  problemOf({
    file,
    kind: "missing",
    key: { phase, id, step },
    got: "no file",
    expected: `the snapshot that ${by} names`,
  });

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

function implausibleValues(root: string, { path, snapshot }: FoundSnapshot): readonly RunProblem[] {
  const { phase, id, step } = snapshot;
  return contradictionsOf(snapshot).map((one) =>
    problemOf({ file: fileName(root, path), kind: "implausible", key: { phase, id, step }, ...one }),
  );
}

/**
 * Reports snapshots without a line: lines at the end of the index were removed, which its chain does not show, or snapshots were
 * added. A process that is killed between a snapshot and its line leaves the newest snapshot without a line, and its lock.
 */
async function unlisted(
  root: string,
  found: readonly FoundSnapshot[],
  index: RunIndex | null,
  { isLocked, fs }: { readonly isLocked: boolean; readonly fs: FileReader },
): Promise<readonly RunProblem[]> {
  const { lines = [] } = index ?? {};
  const listed = new Set(lines.map(keyText));
  const without: FoundSnapshot[] = [];
  for (const one of found) {
    const { sha256 } = one.snapshot;
    if (sha256 === undefined || listed.has(keyText(one.snapshot))) continue;
    // A session that runs now may have superseded it since it was read.
    if ((await sealOf(one.path, fs)) === sha256) without.push(one);
  }
  const [one] = without;
  if (one === undefined) return [];
  if (without.length > 1) {
    const names = without.slice(0, 3).map(({ path }) => fileName(root, path));
    const more = without.length > 3 ? ` and ${without.length - 3} more` : "";
    const got = `no lines of ${without.length} snapshots: ${names.join(", ")}${more}`;
    return [problemOf({ file: "index.jsonl", kind: "index", key: null, got, expected: "a line of each" })];
  }
  const isNewest = lines.every((line) => line.created_at <= one.snapshot.created_at);
  if (isNewest && isLocked) return [];
  const { phase, id, step } = one.snapshot;
  const about = { file: fileName(root, one.path), kind: "unlisted", key: { phase, id, step } } as const;
  return [
    problemOf({ ...about, got: "a snapshot without a line in index.jsonl", expected: "a line of each" }),
  ];
}

const missingIndex = (): RunProblem =>
  problemOf({
    file: "index.jsonl",
    kind: "index",
    key: null,
    got: "no file",
    expected: "an index of the snapshots",
  });

const brokenIndex = (at: number): RunProblem =>
  problemOf({
    file: "index.jsonl",
    kind: "index",
    key: null,
    got: `a line ${at} that does not follow from the lines before it`,
    expected: "an index without removed, added or edited lines",
  });
