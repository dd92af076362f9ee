import { evidenceSchema, snapshotSchema, type Snapshot } from "../../contracts/snapshot.ts";
import { parseSnapshot } from "../../snapshots/parse-snapshot.ts";
import { newSnapshot } from "./new-snapshot.ts";

/** Returns a `failed` snapshot in place of an invalid one. It keeps the key and every field in `keptFields` that validates. */
export function fallbackSnapshot(snapshot: Snapshot, reason: string): Snapshot {
  const { phase, id, step } = snapshot;
  const seed: unknown = snapshot.provenance.seed;
  const measurement = {
    id,
    phase,
    runStep: step,
    crossed: [],
    on: "model",
    createdAt: "unknown",
    at: { step, maxSteps: null, epoch: 0, elapsedSeconds: 0, ended: false },
    evaluation: { name: "unknown", version: "unknown" },
    seed: typeof seed === "string" ? seed : "unknown",
  } as const;
  const blank = newSnapshot(measurement, { status: "failed", reason });
  const kept = keptFields.filter((name) => snapshotSchema.shape[name].safeParse(snapshot[name]).success);
  return parseSnapshot({
    ...blank,
    ...Object.fromEntries(kept.map((name) => [name, snapshot[name]])),
    receipt: snapshot.receipt.filter((evidence) => evidenceSchema.safeParse(evidence).success),
  });
}

/** Fields that describe the measurement rather than its result. */
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
