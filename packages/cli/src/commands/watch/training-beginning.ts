import { basename } from "node:path";
import { canonicalJson } from "@periodic-eval/core/random";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { checkpointPaths, readCheckpointFolder, type WatchedCheckpoint } from "@periodic-eval/remote";

/** How a training began, by which its checkpoints are told from those of another one. */
export interface TrainingBeginning {
  /** Null if the trainer does not write it. */
  readonly seed: number | string | null;
  /** The first entries of the trainer's log. A training that resumes from a checkpoint has them too. */
  readonly entries: WatchedCheckpoint["losses"];
}

/** Entries that are compared. */
const mostEntries = 16;

/** A checkpoint as its trainer describes it. */
type Logged = Pick<WatchedCheckpoint, "step" | "path" | "losses" | "seed">;

/** Returns how a checkpoint's training began; null if its trainer logged nothing. */
export function beginningOf({ step, losses, seed: written }: Logged): TrainingBeginning | null {
  const seed = written ?? null;
  // Later entries may differ in a training that was resumed from this checkpoint.
  const entries = losses.filter((entry, at) => at === 0 || entry.step <= step).slice(0, mostEntries);
  return entries.length === 0 && seed === null ? null : { seed, entries };
}

/**
 * Checks that a checkpoint is of the training that is measured.
 *
 * @throws PeriodicEvalError `config` with the choice for the checkpoint of another training.
 */
export function checkTraining(known: TrainingBeginning | null, checkpoint: Logged, phase: string): void {
  const difference = known && differenceFrom(known, checkpoint);
  if (difference === null) return;
  throw new PeriodicEvalError({
    code: "config",
    where: checkpoint.path,
    got: `a checkpoint of another training: ${difference}`,
    expected: `checkpoints of the training that began phase "${phase}"`,
    fix: "To measure the new training, name another --phase or --run-dir, and remove the checkpoints of the earlier one from the folder.",
  });
}

function differenceFrom({ seed, entries }: TrainingBeginning, here: Logged): string | null {
  if (seed !== null && here.seed !== undefined && seed !== here.seed)
    return `its seed is ${here.seed}, not ${seed}`;
  for (const [at, entry] of here.losses.slice(0, entries.length).entries()) {
    const known = entries[at]!;
    if (canonicalJson(entry as unknown as Json) === canonicalJson(known as unknown as Json)) continue;
    return `its log begins with ${textOf(entry)}, not ${textOf(known)}`;
  }
  return null;
}

const textOf = ({ step, metrics }: TrainingBeginning["entries"][number]): string =>
  `${Object.entries(metrics)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ")} at step ${step}`;

/** Checks that all checkpoints of a folder are of the training that is measured, or of one training if none is yet. */
export async function checkFolder(
  folder: string,
  { pattern, phase, known }: { pattern: string | undefined; phase: string; known: TrainingBeginning | null },
): Promise<void> {
  let beginning = known;
  for (const path of await checkpointPaths(folder, pattern)) {
    const state = (await readCheckpointFolder(path))?.state ?? null;
    if (state === null) continue;
    const step = Number(/(\d+)\D*$/.exec(basename(path))?.[1] ?? 0);
    const { losses, seed } = state;
    const checkpoint = { step, path, losses, ...(seed !== null && { seed }) };
    checkTraining(beginning, checkpoint, phase);
    beginning ??= beginningOf(checkpoint);
  }
}
