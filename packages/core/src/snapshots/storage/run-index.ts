import type { SnapshotKey, Snapshot } from "../../contracts/snapshot.ts";
import { inRunOrder, keyText } from "../run-order.ts";
import { appendLines, writeFileAtomic } from "./atomic-file.ts";
import { sha256 } from "./content-hash.ts";
import type { FileReader, FileSystem } from "./file-system.ts";
import { completeLines, readIfPresent } from "./read-file.ts";
import { fileName, snapshotPaths } from "./layout.ts";
import type { FoundSnapshot } from "./snapshot-file.ts";

/** A line of `index.jsonl`. */
export interface IndexLine extends SnapshotKey, Pick<Snapshot, "run_step" | "created_at"> {
  /** Relative to `periodic_eval/`. */
  readonly file: string;
  /** The snapshot's `sha256`; absent in older files. */
  readonly sha256?: string;
}

export interface RunIndex {
  readonly lines: readonly IndexLine[];
  /** By key, the `sha256` of each line up to the first that does not continue the chain. */
  readonly seals: ReadonlyMap<string, readonly (string | undefined)[]>;
  /** By key, the file that the last of these lines names. */
  readonly files: ReadonlyMap<string, string>;
  /** The number of the first line that does not continue the chain; null if all do, or the index is of an older version. */
  readonly brokenAt: number | null;
}

/** Returns the line of a snapshot without its `chain`: enough for a table of the run without reading its snapshots. */
function lineOf(root: string, { path, snapshot }: FoundSnapshot): string {
  const { phase, id, step, run_step, pct, status, on, evaluation, primary_metric, created_at } = snapshot;
  const value = primary_metric === null ? null : (snapshot.metrics[primary_metric]?.value ?? null);
  return JSON.stringify({
    file: fileName(root, path),
    phase,
    id,
    step,
    run_step,
    pct,
    status,
    on,
    evaluation,
    primary_metric,
    value,
    created_at,
    sha256: snapshot.sha256,
  });
}

const chainField = /,"chain":"([0-9a-f]{64})"\}$/;

const withoutChain = (line: string): string => line.replace(chainField, "}");
const chainOf = (line: string | undefined): string => chainField.exec(line ?? "")?.[1] ?? "";

/** Adds to a line the SHA-256 of the chain so far and of this line. */
const chained = (line: string, previous: string): string =>
  `${line.slice(0, -1)},"chain":"${sha256(`${previous}\n${line}`)}"}`;

/** Parses the text of `index.jsonl`. Ignores a last line that is not complete. */
export function parseIndex(text: string): RunIndex {
  const lines: IndexLine[] = [];
  const seals = new Map<string, (string | undefined)[]>();
  const files = new Map<string, string>();
  let [brokenAt, previous]: [number | null, string] = [null, ""];
  for (const [at, line] of completeLines(text).entries()) {
    const parsed = parseLine(line);
    const isOlder = !chainField.test(line) && previous === "" && parsed?.sha256 === undefined;
    const follows = isOlder || line === chained(withoutChain(line), previous);
    previous = chainOf(line);
    if (!follows || parsed === null) brokenAt ??= at + 1;
    // A line that breaks the chain counts only if its file name agrees with its phase, id and step.
    if (parsed === null || (!follows && !namesItsFile(parsed))) continue;
    lines.push(parsed);
    if (brokenAt !== null) continue;
    const key = keyText(parsed);
    seals.set(key, [...(seals.get(key) ?? []), parsed.sha256]);
    files.set(key, parsed.file);
  }
  return { lines, seals, files, brokenAt };
}

const namesItsFile = ({ file, ...key }: IndexLine): boolean =>
  (["nested", "flat"] as const).some((layout) =>
    snapshotPaths("", layout, key).some((path) => fileName("", path) === file),
  );

/** Reads the index; null if there is none. */
export async function readIndex(path: string, fs: FileReader): Promise<RunIndex | null> {
  const text = await readIfPresent(path, fs);
  return text === null ? null : parseIndex(text);
}

function parseLine(text: string): IndexLine | null {
  try {
    const line = JSON.parse(text) as Partial<IndexLine> | null;
    const { file, phase, id, step, run_step, created_at } = line ?? {};
    const isWhole =
      [file, phase, id, created_at].every((part) => typeof part === "string") &&
      [step, run_step].every((part) => typeof part === "number");
    return isWhole ? (line as IndexLine) : null;
  } catch {
    return null;
  }
}

/**
 * Appends a snapshot's line if the index does, or does not, already name its file. Returns whether it did; an absent index stays
 * absent.
 */
export async function addToIndex(
  { index, root }: { readonly index: string; readonly root: string },
  found: FoundSnapshot,
  isNamed: boolean,
  fs: FileSystem,
): Promise<boolean> {
  const text = await readIfPresent(index, fs);
  if (text === null) return false;
  const line = lineOf(root, found);
  const start = line.slice(0, line.indexOf(",") + 1); // {"file":"…",
  const lines = completeLines(text);
  if (lines.some((known) => known.startsWith(start)) !== isNamed) return false;
  await appendLines(index, [chained(line, chainOf(lines.at(-1)))], fs);
  return true;
}

/**
 * Rewrites the index from the snapshots, unless it already has the same lines in any order.
 *
 * @param missing Lines of snapshots that are gone. They stay, so that every later reader reports the loss.
 */
export async function rebuildIndex(
  index: string,
  root: string,
  found: readonly FoundSnapshot[],
  missing: readonly IndexLine[],
  fs: FileSystem,
): Promise<void> {
  const there = new Set(found.map(({ snapshot }) => keyText(snapshot)));
  const gone = missing.filter((line) => !there.has(keyText(line)));
  const texts = new Map<SnapshotKey, string>([
    ...found.map((one): [SnapshotKey, string] => [one.snapshot, lineOf(root, one)]),
    ...gone.map((line): [SnapshotKey, string] => [line, withoutChain(JSON.stringify(line))]),
  ]);
  const lines = inRunOrder([...found.map(({ snapshot }) => snapshot), ...gone]).map((one) => texts.get(one)!);
  const text = await readIfPresent(index, fs);
  if (text === null && lines.length === 0) return;
  if (text !== null && isUpToDate(text, lines)) return;
  let chain = "";
  const whole = lines.map((line) => {
    const next = chained(line, chain);
    chain = chainOf(next);
    return `${next}\n`;
  });
  await writeFileAtomic(index, whole.join(""), fs);
}

function isUpToDate(text: string, lines: readonly string[]): boolean {
  const isWhole = text === "" || text.endsWith("\n");
  const known = completeLines(text);
  const isChained = known.every((line) => chainField.test(line)) && parseIndex(text).brokenAt === null;
  return isWhole && isChained && known.map(withoutChain).sort().join("\n") === [...lines].sort().join("\n");
}
