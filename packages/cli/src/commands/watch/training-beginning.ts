import { PeriodicEvalError } from "@periodic-eval/core";
import {
  listCheckpoints,
  readTrainerStates,
  tellTrainings,
  trainingDifference,
  type TrainingBeginning,
  type WatchedCheckpoint,
} from "@periodic-eval/remote";

/**
 * Checks that a checkpoint is of the training that is measured.
 *
 * @throws PeriodicEvalError `config` with the choice for the checkpoint of another training.
 */
export function checkTraining(
  known: TrainingBeginning | null,
  { path, losses, seed }: Pick<WatchedCheckpoint, "path" | "losses" | "seed">,
  phase: string,
): void {
  const difference = known && trainingDifference(known, { losses, seed: seed ?? null });
  if (difference === null) return;
  throw new PeriodicEvalError({
    code: "config",
    where: path,
    got: `a checkpoint of another training: ${difference}`,
    expected: `checkpoints of the training that began phase "${phase}"`,
    fix: "To measure the new training, name another --phase or --run-dir.",
  });
}

/**
 * Checks that the training that wrote last into a folder is the one that is measured, and returns the paths of its checkpoints,
 * complete or not.
 */
export async function trainingPaths(
  folder: string,
  {
    pattern,
    phase,
    known,
  }: {
    readonly pattern: string | undefined;
    readonly phase: string;
    readonly known: TrainingBeginning | null;
  },
): Promise<readonly { readonly path: string; readonly step: number }[]> {
  const candidates = await listCheckpoints(folder, pattern);
  const { newest, earlier } = tellTrainings(await readTrainerStates(candidates));
  if (newest !== null) {
    const { losses, seed } = newest.state;
    checkTraining(known, { path: newest.path, losses, ...(seed !== null && { seed }) }, phase);
  }
  return candidates.filter(({ path }) => !earlier.has(path));
}
