import type { Snapshot, SnapshotKey } from "@periodic-eval/contracts";

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
