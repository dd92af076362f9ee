import type { Row, Snapshot, SnapshotKey, SnapshotStore } from "@periodic-eval/contracts";
import { inRunOrder, keyText, parseSnapshot } from "@periodic-eval/store";

/** A superseded snapshot of a memory store. */
export interface Superseded {
  readonly snapshot: Snapshot;
  readonly rows: readonly Row[];
  readonly why: string;
}

/** A snapshot store in memory that exposes its superseded snapshots. */
export interface MemoryStore extends SnapshotStore {
  readonly superseded: readonly Superseded[];
}

/**
 * Returns a snapshot store in memory, for tests. It passes the same conformance suite as the store on disk. Snapshots go in and
 * out as JSON copies, so it reveals values that JSON cannot represent.
 */
export function memoryStore(): MemoryStore {
  const records = new Map<string, { snapshot: Snapshot; rows: readonly Row[] }>();
  const superseded: Superseded[] = [];
  return {
    superseded,
    async put(snapshot, rows) {
      const samples =
        rows.length === 0
          ? null
          : { file: `${snapshot.id}_step_${snapshot.step}.samples.jsonl`, rows: rows.length };
      const record = copy(parseSnapshot({ ...snapshot, samples }));
      records.set(keyText(snapshot), { snapshot: record, rows: copy(rows) });
    },
    get: async (key) => copy(records.get(keyText(key))?.snapshot ?? null),
    rows: async (key) => copy(records.get(keyText(key))?.rows ?? []),
    list: async () => inRunOrder([...records.values()].map(({ snapshot }) => copy(snapshot))),
    async supersede(key: SnapshotKey, why) {
      const record = records.get(keyText(key));
      if (record === undefined) return;
      records.delete(keyText(key));
      superseded.push({ ...record, why });
    },
  };
}

function copy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
