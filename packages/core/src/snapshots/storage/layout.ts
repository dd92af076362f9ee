import { join } from "node:path";
import { checkName, checkPhaseName } from "../../internal/names.ts";
import type { Layout, SnapshotKey } from "../../contracts/snapshot.ts";

/** Paths of a run's record. Names are for people and scripts: what a file is, is read from its content. */
export function runPaths(runDir: string) {
  const root = join(runDir, "periodic_eval");
  return {
    root,
    index: join(root, "index.jsonl"),
    lock: join(root, ".lock"),
    superseded: join(root, "superseded"),
    supersededIndex: join(root, "superseded", "index.jsonl"),
  };
}

/**
 * Where a snapshot may lie in a layout, the first free one is taken. In the flat layout two phases can want one name;
 * the later one then carries its phase.
 */
export function snapshotPaths(root: string, layout: Layout, key: SnapshotKey): readonly string[] {
  const name = snapshotName(key);
  return layout === "nested"
    ? [join(root, key.phase, `${name}.json`)]
    : [join(root, `${name}.json`), join(root, `${name}.${key.phase}.json`)];
}

export function snapshotName({ id, step }: SnapshotKey): string {
  return `${id}_step_${step}`;
}

/** The rows' file beside a snapshot's. */
export function samplesPath(snapshotPath: string): string {
  return snapshotPath.replace(/\.json$/, ".samples.jsonl");
}

/** Whether a file name may be a snapshot's; the content decides. */
export function looksLikeSnapshot(fileName: string): boolean {
  return /_step_\d+(\..+)?\.json$/.test(fileName) && !fileName.startsWith(".");
}

/** Refuses a key that has no file name, before anything is written. */
export function checkKey({ phase, id }: SnapshotKey): void {
  checkPhaseName("phase", phase);
  checkName("id", id);
}
