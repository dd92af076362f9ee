import type { Snapshot, SnapshotKey } from "../contracts/snapshot.ts";

/** One string per key, for maps. No part can hold a slash. */
export function keyText({ phase, id, step }: SnapshotKey): string {
  return `${phase}/${id}/${step}`;
}

/**
 * Phases in order of appearance (steps that went before them, then when their first snapshot was made), and within a
 * phase by step, then id. Depends on the snapshots alone, so that it survives the loss of the index.
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

/** By code unit, not by locale: the same on every machine. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
