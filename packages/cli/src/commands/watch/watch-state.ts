import { jsonText } from "../../terminal/terminal.ts";
import * as z from "zod";
import { basename, join, resolve } from "node:path";
import { PeriodicEvalError, type SessionState } from "@periodic-eval/core";
import {
  readCheckpointFolder,
  type TrainingBeginning,
  listCheckpoints,
  readTrainerStates,
  tellTrainings,
  trainingDifference,
  type Candidate,
  type DatedState,
  type WatchedCheckpoint,
} from "@periodic-eval/remote";
import { makeFolder, readIfPresent, writeFileAtomic } from "@periodic-eval/store";

/** A checkpoint that a watcher has passed, and the session after it. */
export interface PassedCheckpoint {
  /** Absolute. */
  readonly path: string;
  readonly kind: "full" | "adapter";
  /** Names, sizes and times of the files that were read; null if nothing was due at the checkpoint. */
  readonly signature: string | null;
  readonly session: SessionState;
}

/** Where a watcher stopped. It is written after each checkpoint, so that a killed watcher resumes at the next one. */
export interface WatchState {
  /** Absolute path of the folder of checkpoints. */
  readonly checkpoints: string;
  readonly base: string;
  /** How the watched training began; null if its trainer logged nothing. */
  readonly beginning: TrainingBeginning | null;
  /** In order of steps; at least one. */
  readonly passed: readonly PassedCheckpoint[];
  /** Whether training has finished and its end is measured. */
  readonly finished: boolean;
}

export const lastPassed = ({ passed }: WatchState): PassedCheckpoint => passed.at(-1)!;

/**
 * Returns the part of a state that stands, and why the rest does not: a checkpoint's files have changed since it was measured, or a
 * checkpoint became complete after a later one was measured. The session recognizes by the hash of the weights which later
 * measurements are still right.
 *
 * @param paths The checkpoints that must have been passed, if they are complete.
 */
export async function standingPart(
  state: WatchState,
  paths: readonly { readonly path: string; readonly step: number }[],
  needsState: boolean,
): Promise<{ readonly state: WatchState | null; readonly reason: string | null }> {
  const late = await firstMissed(state, paths, needsState);
  const lateAt = state.passed.findIndex(({ session }) => late !== null && session.progress.step > late.step);
  const earlier = lateAt === -1 ? state.passed : state.passed.slice(0, lateAt);
  const before = (at: number, reason: string) => {
    const passed = state.passed.slice(0, at);
    return { state: at === 0 ? null : { ...state, passed, finished: false }, reason };
  };
  for (const [at, { path, signature }] of earlier.entries()) {
    // Null for one that is deleted.
    const now = signature === null ? null : await readCheckpointFolder(path);
    if (now !== null && now.signature !== signature)
      return before(at, `${basename(path)} has changed since it was measured, and is measured again`);
  }
  if (lateAt === -1) return { state, reason: null };
  const overtaking = basename(state.passed[lateAt]!.path);
  return before(lateAt, `${basename(late!.path)} was not complete before ${overtaking} was measured`);
}

async function firstMissed(
  state: WatchState,
  paths: readonly { readonly path: string; readonly step: number }[],
  needsState: boolean,
): Promise<{ readonly path: string; readonly step: number } | null> {
  const passed = new Set(state.passed.map(({ path }) => path));
  const { step: last } = lastPassed(state).session.progress;
  for (const checkpoint of paths) {
    if (checkpoint.step > last || passed.has(resolve(checkpoint.path))) continue;
    const folder = await readCheckpointFolder(checkpoint.path);
    if (folder !== null && (folder.state !== null || !needsState)) return checkpoint;
  }
  return null;
}

const stateFile = (runDir: string, phase: string): string => join(runDir, "watch", `${phase}.json`);

/**
 * Reads the state of an earlier watcher of this run and phase; null if there is none.
 *
 * @throws PeriodicEvalError `config` if it watched another folder or measured another base model; `store` if it cannot be read.
 */
export async function readWatchState(
  runDir: string,
  phase: string,
  asked: Pick<WatchState, "checkpoints" | "base">,
): Promise<WatchState | null> {
  const file = stateFile(runDir, phase);
  const text = await readIfPresent(file);
  if (text === null) return null;
  const state = parse(text);
  const wrong = (got: string, expected: string, fix: string) =>
    new PeriodicEvalError({ code: "config", where: file, got, expected, fix });
  if (state === null)
    throw wrong(
      "a damaged file",
      "the state of a watcher",
      "Remove it to start over: snapshots are used again.",
    );
  for (const name of ["checkpoints", "base"] as const)
    if (state[name] !== asked[name] && resolve(state[name]) !== resolve(asked[name]))
      throw wrong(
        `${name === "base" ? "the base model" : "checkpoints in"} ${state[name]}, not ${asked[name]}`,
        "one training in each phase of a run",
        "Name another --phase or --run-dir.",
      );
  return state;
}

const stateSchema = z.looseObject({
  checkpoints: z.string(),
  base: z.string(),
  beginning: z
    .object({
      seed: z.union([z.number(), z.string()]).nullable(),
      entries: z.array(z.looseObject({ step: z.int() })),
    })
    .nullable(),
  passed: z
    .array(
      z.object({
        path: z.string(),
        kind: z.enum(["full", "adapter"]),
        signature: z.string().nullable(),
        // The session checks the rest.
        session: z.looseObject({ progress: z.looseObject({ step: z.int().nonnegative() }) }),
      }),
    )
    .min(1),
  finished: z.boolean(),
} satisfies Record<keyof WatchState, z.ZodType>);

function parse(text: string): WatchState | null {
  try {
    return stateSchema.parse(JSON.parse(text)) as unknown as WatchState;
  } catch {
    return null;
  }
}

export async function writeWatchState(runDir: string, phase: string, state: WatchState): Promise<void> {
  await makeFolder(join(runDir, "watch"));
  await writeFileAtomic(stateFile(runDir, phase), `${jsonText(state)}\n`);
}

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
