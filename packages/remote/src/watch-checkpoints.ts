import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A whole checkpoint of a training that runs elsewhere. */
export interface WatchedCheckpoint {
  /** Completed optimizer steps when it was written. */
  readonly step: number;
  readonly path: string;
  /** Optimizer steps of the whole training, where the checkpoint tells. */
  readonly maxSteps: number | null;
}

export interface WatchOptions {
  /** Wait for further checkpoints (default) until the training is over, or yield those there are and end. */
  readonly follow?: boolean;
  /** Between two looks at the folder; default 2. */
  readonly pollSeconds?: number;
  /** Ends the watching; no error is thrown. */
  readonly signal?: AbortSignal;
}

const known = { follow: true, pollSeconds: true, signal: true } as const satisfies Record<
  keyof WatchOptions,
  true
>;

/**
 * Yields each checkpoint of a folder once, by rising step: subfolders `checkpoint-<N>` (transformers) or `step_<N>`
 * (ours) that hold a readable `trainer_state.json`, which both write last, beside `config.json` or, of an adapter,
 * `adapter_config.json`. A checkpoint whose step is lower than one already yielded is passed over: a session's steps
 * only rise. The training is over where its newest checkpoint has reached `max_steps` or says `"finished": true`.
 *
 * @throws PeriodicEvalError `config` at the call for a wrong option; `data` where the folder does not exist and `follow`
 *   is false, or cannot be listed.
 */
export function watchCheckpoints(
  folder: string,
  options: WatchOptions = {},
): AsyncGenerator<WatchedCheckpoint, void> {
  checkKeys("watchCheckpoints", options, Object.keys(known));
  const { follow = true, pollSeconds = 2, signal } = options;
  if (typeof folder !== "string" || folder === "") {
    const fix = "Give the folder that holds the checkpoint-<N> or step_<N> folders.";
    throw wrong("folder", JSON.stringify(folder), "a folder", fix);
  }
  if (!(Number.isFinite(pollSeconds) && pollSeconds > 0)) {
    const fix = "Leave it out for 2 seconds.";
    throw wrong("pollSeconds", String(pollSeconds), "a finite number over 0", fix);
  }
  return watch(folder, follow, pollSeconds, signal);
}

async function* watch(
  folder: string,
  follow: boolean,
  pollSeconds: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<WatchedCheckpoint, void> {
  let lastStep = -1;
  while (!signal?.aborted) {
    const found = await wholeCheckpoints(folder, follow);
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
  /** Whether the training ended with it. */
  readonly isLast: boolean;
}

/** By rising step. */
async function wholeCheckpoints(folder: string, mayAppear: boolean): Promise<readonly Found[]> {
  const names = await readdir(folder).catch((cause: NodeJS.ErrnoException) => {
    if (mayAppear && cause.code === "ENOENT") return [];
    throw new PeriodicEvalError({
      code: "data",
      where: folder,
      got: cause.code ?? cause.message,
      expected: "a folder of checkpoints",
      fix: "Give the folder that holds the checkpoint-<N> or step_<N> folders.",
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

/** What a checkpoint says of the training; null where it is not whole (yet). */
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

function wrong(option: string, got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "config", where: `watchCheckpoints ${option}`, got, expected, fix });
}
