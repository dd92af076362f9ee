import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json, SessionState } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { errorMessage } from "@periodic-eval/core/internal";
import { z } from "zod";
import { filesIn, hashFile } from "./whole-folder.ts";

export const stateFile = "trainer_state.json";

// Loose: what else a session keeps there comes back to it.
const progressSchema = z.looseObject({
  step: z.int().nonnegative(),
  maxSteps: z.int().nonnegative().nullable(),
  epoch: z.number(),
  elapsedSeconds: z.number(),
  ended: z.boolean(),
});

const startSchema = z.object({
  /** The phases before it, in order. */
  after: z.array(z.string()),
  /** Hash of every byte that it trains, as it began; null for a first phase. */
  weights: z.string().nullable(),
});

/** What a phase began from. */
export type PhaseStart = z.infer<typeof startSchema>;

const trainerStateSchema = z.object({
  schema_version: z.literal(1),
  phase: z.string(),
  /** Completed optimizer steps. */
  step: z.int().nonnegative(),
  /** Null where nobody knows how long the phase is. */
  max_steps: z.int().positive().nullable(),
  /** Passes over the data, with fractions. */
  epoch: z.number(),
  /** True where nothing of the phase is left to train. */
  finished: z.boolean(),
  /** Why it ended before `max_steps`; null where it did not. */
  stop_reason: z.string().nullable(),
  /** Of the last update that was made; null where there was none. */
  loss: z.number().nullable(),
  /** The checkpoint that stays as the best: the metric that it is best by, its step, and a hash of the rows validated on. */
  best: z
    .object({ metric: z.string(), value: z.number(), step: z.int().nonnegative(), rows: z.string() })
    .nullable(),
  /** Updates left out for NaN or Inf: of the phase, and the last ones in a row. */
  skipped_updates: z.int().nonnegative(),
  skipped_in_a_row: z.int().nonnegative(),
  seed: z.union([z.number(), z.string()]),
  optimizer_steps: z.int().nonnegative(),
  /** What must be the same for a resume to be exact. */
  exact: z.record(z.string(), z.json()),
  session: z.looseObject({
    phase: z.string(),
    progress: progressSchema,
    runStepOffset: z.int().nonnegative(),
    callbacks: z.record(z.string(), z.json()),
    windowSeconds: z.number().nonnegative(),
  }),
  /** What the phase began from; left out where who trained it did not say what came before. */
  start: startSchema.optional(),
  /** What else who saved it wants back. */
  note: z.json().optional(),
  /** Hash of every other file of the folder. */
  files: z.record(z.string(), z.string()),
});

/** Hash of all that the file says besides. */
const ownHash = "state_hash";

/** The state that makes a folder of weights a checkpoint; written last. Snake case: other programs read it. */
export type TrainerState = Omit<
  z.infer<typeof trainerStateSchema>,
  "session" | "exact" | "note" | "start"
> & {
  readonly start?: PhaseStart | undefined;
  readonly session: SessionState;
  readonly exact: Readonly<Record<string, Json>>;
  readonly note?: Json | undefined;
};

/** Hashes of all files of a folder but the state's own. */
export async function hashFiles(folder: string): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {};
  for (const file of await filesIn(folder)) {
    if (file !== stateFile) hashes[file] = await hashFile(join(folder, file));
  }
  return hashes;
}

/** The state's file, which says of itself what it holds. */
export const stateText = (state: TrainerState): string =>
  `${JSON.stringify({ ...state, [ownHash]: hashOf(state) }, null, 2)}\n`;

/** Of what JSON gives back: keys that are undefined are in no file. */
const hashOf = (state: unknown): string => hashJson(JSON.parse(JSON.stringify(state)) as Json);

/** What a checkpoint's state says, whatever became of its other files; the reason where it is torn itself. */
export async function readState(folder: string): Promise<TrainerState | string> {
  try {
    const said: unknown = JSON.parse(await readFile(join(folder, stateFile), "utf8"));
    const state = trainerStateSchema.parse(said);
    const { [ownHash]: hash, ...rest } = said as Record<string, unknown>;
    return hash === hashOf(rest) ? state : `${stateFile} is not what was written`;
  } catch (error) {
    return `${stateFile} cannot be read (${errorMessage(error).split("\n")[0]})`;
  }
}

/** The state of a checkpoint whose every file is as it was written, or the reason why it is torn. */
export async function verifyCheckpoint(folder: string): Promise<TrainerState | string> {
  const state = await readState(folder);
  if (typeof state === "string") return state;
  const found = await hashFiles(folder);
  for (const [file, hash] of Object.entries(state.files)) {
    if (found[file] !== hash)
      return found[file] === undefined ? `${file} is missing` : `${file} is not what was written`;
  }
  return state;
}
