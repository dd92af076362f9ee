import { join, resolve } from "node:path";
import { PeriodicEvalError, type SessionState } from "@periodic-eval/core";
import { nodeFiles, readIfPresent, writeFileAtomic } from "@periodic-eval/core/snapshots";
import * as z from "zod";

/** Where a watcher stopped. It is written after each checkpoint, so that a killed watcher resumes at the next one. */
export interface WatchState {
  /** Absolute path of the folder of checkpoints. */
  readonly checkpoints: string;
  readonly base: string;
  /** The absolute path of the last checkpoint that was measured, and its kind. */
  readonly path: string;
  readonly kind: "full" | "adapter";
  /** Whether training has finished and its end is measured. */
  readonly finished: boolean;
  readonly session: SessionState;
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
  path: z.string(),
  kind: z.enum(["full", "adapter"]),
  finished: z.boolean(),
  // The session checks the rest.
  session: z.looseObject({ progress: z.looseObject({ step: z.int().nonnegative() }) }),
} satisfies Record<keyof WatchState, z.ZodType>);

function parse(text: string): WatchState | null {
  try {
    return stateSchema.parse(JSON.parse(text)) as unknown as WatchState;
  } catch {
    return null;
  }
}

export async function writeWatchState(runDir: string, phase: string, state: WatchState): Promise<void> {
  await nodeFiles.makeFolder(join(runDir, "watch"));
  await writeFileAtomic(stateFile(runDir, phase), `${JSON.stringify(state, null, 2)}\n`);
}
