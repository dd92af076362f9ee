import type { Snapshot, SnapshotKey } from "@periodic-eval/contracts";
import { keyText } from "@periodic-eval/store";

/**
 * The snapshots of a run as this session knows them. A snapshot is *settled* if it belongs to the training as it is now: its
 * step is at or before the resumed one, or this session measured or adopted it. All others were left by a training that got
 * further before it was interrupted.
 */
export class KnownSnapshots {
  readonly #phase: string;
  #snapshots = new Map<string, Snapshot>();
  readonly #settled = new Set<string>();

  constructor(phase: string) {
    this.#phase = phase;
  }

  /**
   * Takes over what the store holds.
   *
   * @param resumedStep The step of the checkpoint; null if the phase starts from its beginning.
   * @param interrupted By id, the measurements that were interrupted at that step. Their snapshots are not settled.
   */
  load(
    snapshots: readonly Snapshot[],
    resumedStep: number | null,
    interrupted: Readonly<Record<string, unknown>> = {},
  ): void {
    this.#snapshots = new Map(snapshots.map((snapshot) => [keyText(snapshot), snapshot]));
    this.#settled.clear();
    for (const [key, snapshot] of this.#snapshots) {
      const isInterrupted = snapshot.step === resumedStep && Object.hasOwn(interrupted, snapshot.id);
      const isBehind = resumedStep !== null && snapshot.step <= resumedStep && !isInterrupted;
      if (snapshot.phase !== this.#phase || isBehind) this.#settled.add(key);
    }
  }

  get(key: SnapshotKey): Snapshot | null {
    return this.#snapshots.get(keyText(key)) ?? null;
  }

  isSettled(key: SnapshotKey): boolean {
    return this.#settled.has(keyText(key));
  }

  getSettled(key: SnapshotKey): Snapshot | null {
    return this.isSettled(key) ? this.get(key) : null;
  }

  /** Returns the snapshot of this key that an interrupted training left, else null. */
  getUnsettled(key: SnapshotKey): Snapshot | null {
    return this.isSettled(key) ? null : this.get(key);
  }

  settle(snapshot: Snapshot): void {
    const key = keyText(snapshot);
    this.#snapshots.set(key, snapshot);
    this.#settled.add(key);
  }

  remove(key: SnapshotKey): void {
    this.#snapshots.delete(keyText(key));
    this.#settled.delete(keyText(key));
  }

  /** Returns the settled snapshots of a phase with this id, by step. */
  settledOf(phase: string, id: string): readonly Snapshot[] {
    return this.settled()
      .filter((snapshot) => snapshot.phase === phase && snapshot.id === id)
      .sort((a, b) => a.step - b.step);
  }

  settled(): Snapshot[] {
    return this.all().filter((snapshot) => this.isSettled(snapshot));
  }

  unsettled(): Snapshot[] {
    return this.all().filter((snapshot) => !this.isSettled(snapshot));
  }

  /** Returns the snapshots of all phases, in the run's order. */
  all(): Snapshot[] {
    return [...this.#snapshots.values()];
  }
}
