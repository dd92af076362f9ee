import { PeriodicEvalError } from "@periodic-eval/core";
import {
  listCheckpoints,
  readTrainerStates,
  tellTrainings,
  trainingDifference,
  type Candidate,
  type DatedState,
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
 * Checks that earlier trainings were repeated from their beginning: one of their checkpoints has a later step than the one that was
 * written last. Otherwise the training may have been resumed with another log.
 */
function checkIsRepeated(
  newest: Pick<DatedState, "path" | "step">,
  candidates: readonly Candidate[],
  earlier: ReadonlyMap<string, string>,
): void {
  const leftovers = candidates.filter(({ path }) => earlier.has(path));
  if (leftovers.length === 0 || leftovers.some(({ step }) => step > newest.step)) return;
  const { name, path } = leftovers[0]!;
  throw new PeriodicEvalError({
    code: "config",
    where: newest.path,
    got: `a checkpoint of another training than ${name}, of which ${earlier.get(path)!}`,
    expected: "checkpoints of one training",
    fix: "Move those that are not to be measured to another folder.",
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
    if (known === null) checkIsRepeated(newest, candidates, earlier);
  }
  return candidates.filter(({ path }) => !earlier.has(path));
}
