import type { TrainerCallback } from "../../contracts/callback.ts";
import type { Row } from "../../contracts/evaluation.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { keyText } from "../../snapshots/order.ts";
import { parseSnapshot } from "../../snapshots/parse-snapshot.ts";
import { evidenceSchema, snapshotSchema, type Snapshot, type SnapshotKey } from "../../contracts/snapshot.ts";
import { recordOf } from "./new-record.ts";
import type { Finished, Run, Unwritten } from "../run.ts";

/**
 * Writes a snapshot and its rows, and lines it up for loggers and hooks. What the store refuses (a full disk) is kept
 * and written with the next snapshot, at the latest at `close`: training goes on. What no store could write, for it is
 * no snapshot, becomes a `failed` record of the same key.
 *
 * @param stale why a record of the same key, left from a training that was cut off, is set aside first.
 * @param by the callback that is told where the snapshot is none.
 */
export async function commit(
  run: Run,
  given: Snapshot,
  rows: readonly Row[],
  {
    stale = null,
    by = null,
    failure = null,
  }: {
    readonly stale?: string | null;
    readonly by?: TrainerCallback | null;
    readonly failure?: Finished["failure"];
  } = {},
): Promise<void> {
  const { snapshot, error } = writable(run, given);
  const isSame = (one: { readonly snapshot: Snapshot }) => keyText(one.snapshot) === keyText(snapshot);
  const replaced = run.unwritten.find(isSame);
  const waiting: Unwritten = {
    snapshot,
    rows,
    // Shared with the entry it replaces, which may be on its way to the store: nothing is set aside twice.
    stale: replaced !== undefined && replaced.stale.why !== null ? replaced.stale : { why: stale },
    refusal: null,
  };
  run.unwritten = [...run.unwritten.filter((one) => !isSame(one)), waiting];
  await writeAll(run);
  let written = snapshot;
  try {
    // The store adds what it knows, the file of the rows.
    if (!run.unwritten.includes(waiting)) written = (await run.store.get(snapshot)) ?? snapshot;
  } catch (unread) {
    run.telling.warn("store", `could not read ${keyText(snapshot)} again: ${errorMessage(unread)}`);
  }
  run.records.settle(written);
  run.finished.push({ snapshot: written, failure: failure ?? (error === null ? null : { by, error }) });
}

/**
 * Writes all that is not written yet. What the store refuses stays in `run.unwritten` with the reason, is told of once,
 * and holds up nothing else. One writes at a time.
 */
export function writeAll(run: Run): Promise<void> {
  run.writing = run.writing.then(() => writeEach(run));
  return run.writing;
}

/** `writeAll`, and a warning where a checkpoint taken now would leave snapshots behind. */
export async function writeBeforeSave(run: Run): Promise<void> {
  if (run.unwritten.length === 0) return;
  await writeAll(run);
  if (run.unwritten.length === 0) return;
  const keys = run.unwritten.map(({ snapshot }) => keyText(snapshot)).join(", ");
  run.telling.warn(
    "store",
    `a run resumed from the checkpoint of step ${run.progress.step} will lack ${keys}, which could not be written`,
  );
}

async function writeEach(run: Run): Promise<void> {
  for (const one of run.unwritten) {
    const { snapshot, rows, stale } = one;
    try {
      if (stale.why !== null) {
        await run.store.supersede(snapshot, stale.why);
        stale.why = null;
      }
      await run.store.put(snapshot, rows);
      run.unwritten = run.unwritten.filter((other) => other !== one);
    } catch (error) {
      if (one.refusal === null) {
        run.telling.warn(
          "store",
          `could not write ${keyText(snapshot)}, which will be tried again: ${errorMessage(error)}`,
        );
      }
      one.refusal = { error };
      if (run.options.onFailure === "throw") run.toThrow ??= error;
    }
  }
}

/** The rows of a record, also where the store has not taken it yet. Throws where they cannot be read. */
export async function rowsOf(
  { store, unwritten }: Pick<Run, "store" | "unwritten">,
  key: SnapshotKey,
): Promise<readonly Row[]> {
  const waiting = unwritten.find(({ snapshot }) => keyText(snapshot) === keyText(key));
  return waiting?.rows ?? store.rows(key);
}

function writable(run: Run, snapshot: Snapshot): { snapshot: Snapshot; error: unknown } {
  try {
    return { snapshot: parseSnapshot(snapshot, keyText(snapshot)), error: null };
  } catch (error) {
    run.telling.warn(`snapshot ${keyText(snapshot)}`, `cannot be written as it is: ${errorMessage(error)}`);
    if (run.options.onFailure === "throw") run.toThrow ??= error;
    return { snapshot: withoutNumbers(snapshot, errorMessage(error)), error };
  }
}

/** What stays of a record that is no snapshot: which firing it was, why it failed, and all that is a field of one. */
function withoutNumbers(snapshot: Snapshot, reason: string): Snapshot {
  const { phase, id, step } = snapshot;
  const seed: unknown = snapshot.provenance.seed;
  const firing = {
    id,
    phase,
    runStepOffset: 0,
    crossed: [],
    on: "model",
    createdAt: "unknown",
    at: { step, maxSteps: null, epoch: 0, elapsedSeconds: 0, ended: false },
    evaluation: { name: "unknown", version: "unknown" },
    seed: typeof seed === "string" ? seed : "unknown",
  } as const;
  const blank = recordOf(firing, { status: "failed", reason });
  const kept = keptFields.filter((name) => snapshotSchema.shape[name].safeParse(snapshot[name]).success);
  return parseSnapshot({
    ...blank,
    ...Object.fromEntries(kept.map((name) => [name, snapshot[name]])),
    receipt: snapshot.receipt.filter((evidence) => evidenceSchema.safeParse(evidence).success),
  });
}

/** Of a firing, whatever became of its numbers. */
const keptFields = [
  "evaluation",
  "evaluation_version",
  "run_step",
  "max_steps",
  "pct",
  "epoch",
  "crossed",
  "created_at",
  "on",
  "timing",
  "weights",
] as const satisfies readonly (keyof Snapshot)[];
