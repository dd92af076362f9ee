import { PeriodicEvalError } from "@periodic-eval/core";
import { configError, parseOptions, printable } from "@periodic-eval/core/internal";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";

/** A complete checkpoint of a training run in another process. */
export interface WatchedCheckpoint {
  /** Completed optimizer steps at the time of the checkpoint. */
  readonly step: number;
  readonly path: string;
  /** Optimizer steps of the whole run; null if the checkpoint does not contain this number. */
  readonly maxSteps: number | null;
}

export interface WatchOptions {
  /** True (default): waits for new checkpoints until training has finished. False: yields the existing ones and ends. */
  readonly follow?: boolean;
  /** Seconds between two reads of the folder. Default 2. */
  readonly pollSeconds?: number;
  /** Ends the iteration without an error. */
  readonly signal?: AbortSignal;
}

const interval = "a finite number above 0";
const optionsSchema = z.strictObject({
  follow: z.boolean().default(true),
  pollSeconds: z
    .number(interval)
    .positive(interval)
    .meta({ fix: "Remove it for the default, 2 seconds." })
    .default(2),
  signal: z.instanceof(AbortSignal, { error: "an AbortSignal" }).optional(),
} satisfies Record<keyof WatchOptions, z.ZodType>);

const folderFix = "Give the folder that holds the checkpoint-<N> or step_<N> folders.";

/**
 * Yields each checkpoint of a folder once, in order of steps. A checkpoint is a subfolder `checkpoint-<N>` (transformers) or
 * `step_<N>` (ours) with a readable `trainer_state.json`, which both libraries write last, and `config.json` or, for an adapter,
 * `adapter_config.json`. Skips a checkpoint with a lower step than the last one that it yielded, because the steps of a session
 * only increase. While there is no checkpoint yet, a warning on the console names the folder. Training has finished when the newest checkpoint has reached `max_steps` or contains `"finished": true`.
 *
 * @throws PeriodicEvalError The call throws `config` for a wrong option. The iteration throws `data` if the folder cannot be
 *   listed, or if it does not exist and `follow` is false.
 */
export function watchCheckpoints(
  folder: string,
  options: WatchOptions = {},
): AsyncGenerator<WatchedCheckpoint, void> {
  const { follow, pollSeconds, signal } = parseOptions("watchCheckpoints options", optionsSchema, options);
  if (typeof folder !== "string" || folder === "")
    throw configError({
      where: "watchCheckpoints folder",
      value: folder,
      expected: "a folder's path",
      fix: folderFix,
    });
  return watch(folder, follow, pollSeconds, signal);
}

async function* watch(
  folder: string,
  follow: boolean,
  pollSeconds: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<WatchedCheckpoint, void> {
  let lastStep = -1;
  let hasWarned = false;
  while (!signal?.aborted) {
    const found = await completeCheckpoints(folder, follow);
    if (found.length === 0 && follow && !hasWarned) {
      hasWarned = true;
      console.warn(printable(`[periodic-eval] watchCheckpoints: no checkpoint in ${folder} yet, waiting`));
    }
    for (const { checkpoint } of found) {
      if (checkpoint.step <= lastStep) continue;
      lastStep = checkpoint.step;
      yield checkpoint;
      if (signal?.aborted) return;
    }
    if (!follow || found.at(-1)?.isLast) return;
    await sleep(pollSeconds * 1000, undefined, signal && { signal }).catch(() => undefined);
  }
}

interface Found {
  readonly checkpoint: WatchedCheckpoint;
  /** Whether training has finished with this checkpoint. */
  readonly isLast: boolean;
}

/** Returns the complete checkpoints of a folder in order of steps. */
async function completeCheckpoints(folder: string, mayBeMissing: boolean): Promise<readonly Found[]> {
  const names = await readdir(folder).catch((cause: NodeJS.ErrnoException) => {
    if (mayBeMissing && cause.code === "ENOENT") return [];
    throw new PeriodicEvalError({
      code: "data",
      where: folder,
      got: cause.code ?? cause.message,
      expected: "a folder of checkpoints",
      fix: folderFix,
      cause,
    });
  });
  const found: Found[] = [];
  for (const name of names) {
    const digits = /^(?:checkpoint-|step_)(\d+)$/.exec(name)?.[1];
    if (digits === undefined) continue;
    const path = join(folder, name);
    const step = Number(digits);
    const state = await readState(path);
    if (state === null) continue;
    const { maxSteps, isFinished } = state;
    const isLast = isFinished || (maxSteps !== null && step >= maxSteps);
    found.push({ checkpoint: { step, path, maxSteps }, isLast });
  }
  return found.sort((a, b) => a.checkpoint.step - b.checkpoint.step);
}

/** Reads a checkpoint's `trainer_state.json`; null if the checkpoint is incomplete. */
async function readState(
  path: string,
): Promise<{ readonly maxSteps: number | null; readonly isFinished: boolean } | null> {
  try {
    if (!(await isFile(join(path, "config.json"))) && !(await isFile(join(path, "adapter_config.json"))))
      return null;
    const state: unknown = JSON.parse(await readFile(join(path, "trainer_state.json"), "utf8"));
    const { max_steps: maxSteps, finished } = (state ?? {}) as { max_steps?: unknown; finished?: unknown };
    return {
      maxSteps: typeof maxSteps === "number" && maxSteps > 0 ? maxSteps : null,
      isFinished: finished === true,
    };
  } catch {
    return null;
  }
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
