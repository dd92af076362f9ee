import { keyText } from "../../snapshots/order.ts";
import type { Snapshot, SnapshotKey } from "../../contracts/snapshot.ts";

/**
 * The snapshots of a run as this session knows them. A record is *settled* where it stands for the training as it now
 * is: it lies at or before the step resumed from, or this session measured or adopted it. All others are left from a
 * training that went further before it was cut off.
 */
export interface Records {
  get(key: SnapshotKey): Snapshot | null;
  isSettled(key: SnapshotKey): boolean;
  /** Puts a record in, settled. */
  settle(snapshot: Snapshot): void;
  remove(key: SnapshotKey): void;
  /** Settled records of a phase with this id, by step. */
  settled(phase: string, id: string): readonly Snapshot[];
  /** Records of this phase that are not settled. */
  unsettled(): readonly Snapshot[];
  /** Of all phases, in the run's order. */
  all(): readonly Snapshot[];
}

/**
 * @param resumedStep the step of the state resumed from; null where the phase starts anew.
 * @param owed by id what was not measured at that step: a record of it is left from another training.
 */
export function recordsOf(
  found: readonly Snapshot[],
  phase: string,
  resumedStep: number | null,
  owed: Readonly<Record<string, unknown>> = {},
): Records {
  const records = new Map(found.map((snapshot) => [keyText(snapshot), snapshot]));
  const settled = new Set<string>();
  for (const [key, snapshot] of records) {
    const isOwed = snapshot.step === resumedStep && Object.hasOwn(owed, snapshot.id);
    const isBehind = resumedStep !== null && snapshot.step <= resumedStep && !isOwed;
    if (snapshot.phase !== phase || isBehind) settled.add(key);
  }
  return {
    get: (key) => records.get(keyText(key)) ?? null,
    isSettled: (key) => settled.has(keyText(key)),
    settle(snapshot) {
      records.set(keyText(snapshot), snapshot);
      settled.add(keyText(snapshot));
    },
    remove(key) {
      records.delete(keyText(key));
      settled.delete(keyText(key));
    },
    settled: (of, id) =>
      [...records.values()]
        .filter((snapshot) => snapshot.phase === of && snapshot.id === id && settled.has(keyText(snapshot)))
        .sort((a, b) => a.step - b.step),
    unsettled: () => [...records.values()].filter((snapshot) => !settled.has(keyText(snapshot))),
    all: () => [...records.values()],
  };
}
