import { basename, dirname, join, relative } from "#platform";
import type { Layout, SnapshotKey, Snapshot } from "@periodic-eval/contracts";
import { checkName, checkPhaseName } from "@periodic-eval/contracts/options";

/** Returns the paths of a run's files. Readers identify a snapshot by its content, so its name is only for people and scripts. */
export function runPaths(runDir: string) {
  const root = join(runDir, "periodic_eval");
  return {
    root,
    index: join(root, "index.jsonl"),
    lock: join(root, ".lock"),
    closings: join(root, ".phases"),
    training: join(root, "training"),
    superseded: join(root, "superseded"),
    supersededIndex: join(root, "superseded", "index.jsonl"),
  };
}

/** Returns the file of a phase's training metrics. It is the same in both layouts. */
export const trainingPath = (runDir: string, phase: string): string =>
  join(runPaths(runDir).training, `${phase}.jsonl`);

/**
 * Returns the possible paths of a new snapshot; the store takes the first free one. In the flat layout two phases can have
 * snapshots of the same name; the later one then contains its phase.
 */
export function snapshotPaths(root: string, layout: Layout, key: SnapshotKey): readonly string[] {
  const name = snapshotName(key);
  return layout === "nested"
    ? [join(root, key.phase, `${name}.json`)]
    : [join(root, `${name}.json`), join(root, `${name}.${key.phase}.json`)];
}

/** Returns a path relative to `periodic_eval/`, with slashes. */
export const fileName = (root: string, path: string): string => relative(root, path).replaceAll("\\", "/");

export function snapshotName({ id, step }: SnapshotKey): string {
  return `${id}_step_${step}`;
}

/** Returns the path of the rows that a snapshot names, beside the snapshot. */
export function samplesPath(snapshotPath: string): string {
  return snapshotPath.replace(/\.json$/, ".samples.jsonl");
}

/** Returns where a snapshot waits until its rows are written. */
export function nextPath(snapshotPath: string): string {
  return join(dirname(snapshotPath), `.${basename(snapshotPath)}.next`);
}

/** Returns the path of the snapshot that waits at `path`; null if none can wait there. */
export function pathAfterNext(path: string): string | null {
  const name = /^\.(.+_step_\d+(?:\..+)?\.json)\.next$/.exec(basename(path))?.[1];
  return name === undefined ? null : join(dirname(path), name);
}

/**
 * Returns the key that a snapshot's file name suggests; null if its phase is unknown.
 *
 * @param phases The phases of the run. Most names of the flat layout do not say the phase: it is known if there is only one.
 */
export function keyFromName(file: string, phases: ReadonlySet<string>): SnapshotKey | null {
  const [only] = phases.size === 1 ? phases : [];
  const {
    phase = only,
    id,
    step,
  } = /^(?<phase>[^/]+)\/(?<id>.+)_step_(?<step>\d+)\.json$/.exec(file)?.groups ??
  /^(?<id>[^/]+)_step_(?<step>\d+)(?:\.(?<phase>[^/]+))?\.json$/.exec(file)?.groups ??
  {};
  return phase === undefined || id === undefined ? null : { phase, id, step: Number(step) };
}

/** Whether a file may be a snapshot, by its name. No snapshot has a line break in its name, which could forge a line of a report. */
export function looksLikeSnapshot(fileName: string): boolean {
  return /^.*_step_\d+(\..+)?\.json$/.test(fileName) && !fileName.startsWith(".");
}

/** Checks that a key can be a file name. */
export function checkKey({ phase, id }: SnapshotKey): void {
  checkPhaseName("phase", phase);
  checkName("id", id);
}

/** Returns a unique string per key, for maps. Names of phases and ids contain no slash. */
export function keyText({ phase, id, step }: SnapshotKey): string {
  return `${phase}/${id}/${step}`;
}

/** Returns the keys of steps by `<phase>/<id>`, as a checkpoint keeps them. */
export const keysOfSteps = (steps: Readonly<Record<string, readonly number[]>>): readonly SnapshotKey[] =>
  Object.entries(steps).flatMap(([name, ofName]) => {
    const [phase = "", id = ""] = name.split("/");
    return ofName.map((step) => ({ phase, id, step }));
  });

/**
 * Returns snapshots sorted by phase, then step, then id. Phases are ordered by the steps before them, then by the creation time
 * of their first snapshot. The order depends on the snapshots only, so it survives the loss of the index.
 */
export function inRunOrder<T extends Pick<Snapshot, "phase" | "step" | "id" | "run_step" | "created_at">>(
  snapshots: readonly T[],
): readonly T[] {
  const phases = new Map<string, { before: number; createdAt: string }>();
  for (const { phase, run_step, step, created_at } of snapshots) {
    const known = phases.get(phase);
    phases.set(phase, {
      before: Math.min(known?.before ?? Infinity, run_step - step),
      createdAt: known === undefined || created_at < known.createdAt ? created_at : known.createdAt,
    });
  }
  return [...snapshots].sort((a, b) => {
    const [left, right] = [phases.get(a.phase)!, phases.get(b.phase)!];
    return (
      left.before - right.before ||
      compareText(left.createdAt, right.createdAt) ||
      compareText(a.phase, b.phase) ||
      a.step - b.step ||
      compareText(a.id, b.id)
    );
  });
}

/** Compares by code unit instead of locale, so that the order is the same on every machine. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
