import { join } from "@periodic-eval/store/platform";
import { readFile } from "@periodic-eval/store/browser";
import type { Json, SessionState } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { errorMessage } from "@periodic-eval/contracts/options";
import { errnoOf, filesIn, hashFiles, storeError } from "@periodic-eval/store";
import * as z from "zod";

export const stateFile = "trainer_state.json";

// Loose, because the session may store further fields that must come back to it.
const progressSchema = z.looseObject({
  step: z.int().nonnegative(),
  maxSteps: z.int().nonnegative().nullable(),
  epoch: z.number(),
  elapsedSeconds: z.number(),
  ended: z.boolean(),
});

const startSchema = z.object({
  /** The earlier phases, in order. */
  after: z.array(z.string()),
  /** Hash of every byte of the trainable weights at the start; null for a first phase. */
  weights: z.string().nullable(),
});

/** The state in which a phase starts. */
export type PhaseStart = z.infer<typeof startSchema>;

const trainerStateSchema = z.object({
  schema_version: z.literal(1),
  phase: z.string(),
  /** Completed optimizer steps. */
  step: z.int().nonnegative(),
  /** Null if the length of the phase is unknown. */
  max_steps: z.int().positive().nullable(),
  /** Passes over the data, with fractions. */
  epoch: z.number(),
  /** Whether no step of the phase is left. */
  finished: z.boolean(),
  /** Why it ended before `max_steps`; null if it did not. */
  stop_reason: z.string().nullable(),
  /** The condition of `stopWhen` that ended it; null if none did. */
  stop_condition: z.string().nullable(),
  /** Loss of the last applied update; null before the first. */
  loss: z.number().nullable(),
  /** The best checkpoint: its metric, value and step, and a hash of the validation rows. */
  best: z
    .object({ metric: z.string(), value: z.number(), step: z.int().nonnegative(), rows: z.string() })
    .nullable(),
  /** The step up to which no condition of `stopWhen` was met; null without conditions. */
  clean_step: z.int().nonnegative().nullable(),
  /** Updates skipped because of NaN or Inf, in the whole phase. */
  skipped_updates: z.int().nonnegative(),
  /** Skipped updates since the last applied one. */
  skipped_in_a_row: z.int().nonnegative(),
  seed: z.union([z.number(), z.string()]),
  optimizer_steps: z.int().nonnegative(),
  /** The facts that must be equal for an exact resume. */
  exact: z.record(z.string(), z.json()),
  session: z.looseObject({
    phase: z.string(),
    progress: progressSchema,
    runStepOffset: z.int().nonnegative(),
    callbacks: z.record(z.string(), z.json()),
    windowSeconds: z.number().nonnegative(),
  }),
  /** The start of the phase; omitted if the earlier phases are unknown. */
  start: startSchema.optional(),
  /** A value of the caller of `save`, returned on resume. */
  note: z.json().optional(),
  /** Hash of every other file in the folder. */
  files: z.record(z.string(), z.string()),
});

/** Key of the hash over the rest of the file. */
const ownHash = "state_hash";

/** The content of `trainer_state.json`, written last. Snake case, because other programs read it. */
export type TrainerState = Omit<
  z.infer<typeof trainerStateSchema>,
  "session" | "exact" | "note" | "start"
> & {
  readonly start?: PhaseStart | undefined;
  readonly session: SessionState;
  readonly exact: Readonly<Record<string, Json>>;
  readonly note?: Json | undefined;
};

/** Hashes all files of a folder except the state itself. */
export async function hashesIn(folder: string): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {};
  for (const file of await filesIn(folder)) {
    if (file !== stateFile) hashes[file] = await hashFiles([join(folder, file)]);
  }
  return hashes;
}

/** Returns the content of the state's file, with a hash over itself. */
export const stateText = (state: TrainerState): string =>
  `${JSON.stringify({ ...state, [ownHash]: hashOf(state) }, null, 2)}\n`;

/** Hashes the state after a round trip through JSON, which drops undefined keys. */
const hashOf = (state: unknown): string => hashJson(JSON.parse(JSON.stringify(state)) as Json);

/**
 * Reads a checkpoint's state without verifying the other files. Returns the reason as a string if the state is damaged.
 *
 * @throws PeriodicEvalError `store` if the file cannot be read now, which says nothing about its content.
 */
export async function readState(folder: string): Promise<TrainerState | string> {
  const text = await readFile(join(folder, stateFile), "utf8").catch(missingReason);
  if (typeof text !== "string") return `${stateFile} cannot be read (it ${text.reason})`;
  try {
    const content: unknown = JSON.parse(text);
    const { data: state, error } = trainerStateSchema.safeParse(content);
    if (error !== undefined) {
      const { path, message } = error.issues[0]!;
      return `${stateFile} cannot be read (${[path.join("."), message].filter(Boolean).join(": ")})`;
    }
    const { [ownHash]: hash, ...rest } = content as Record<string, unknown>;
    return hash === hashOf(rest) ? state : `${stateFile} was changed`;
  } catch (error) {
    return `${stateFile} cannot be read (${errorMessage(error).split("\n")[0]})`;
  }
}

/** Returns why there is no file; throws another error. */
function missingReason(error: NodeJS.ErrnoException): { readonly reason: string } {
  if (errnoOf(error) === "ENOENT") return { reason: "is missing" };
  throw storeError(error.path ?? "", error);
}

/**
 * Returns the state of a checkpoint whose files are all unchanged, or the reason why the checkpoint is damaged.
 *
 * @throws PeriodicEvalError `store` if a file cannot be read now.
 */
export async function verifyCheckpoint(folder: string): Promise<TrainerState | string> {
  const state = await readState(folder);
  if (typeof state === "string") return state;
  for (const [file, hash] of Object.entries(state.files)) {
    // Follows links: some programs keep large files elsewhere.
    const actual = await hashFiles([join(folder, file)]).catch(missingReason);
    if (typeof actual !== "string") return `${file} ${actual.reason}`;
    if (actual !== hash) return `${file} was changed`;
  }
  return state;
}
