import { PeriodicEvalError } from "@periodic-eval/core";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A whole checkpoint of a training that runs elsewhere. */
export interface Checkpoint {
  /** Completed optimizer steps when it was written. */
  readonly step: number;
  readonly path: string;
  /** Optimizer steps of the whole training, where the checkpoint tells. */
  readonly maxSteps: number | null;
}

export interface WatchOptions {
  /** Wait for further checkpoints (default) until the last step was seen, or yield those there are and end. */
  readonly follow?: boolean;
  readonly pollSeconds?: number;
  /** Ends the watching; no error is thrown. */
  readonly signal?: AbortSignal;
}

/**
 * Yields each checkpoint of a folder once, by rising step: subfolders `checkpoint-<N>` (transformers) or `step_<N>`
 * (ours) that hold a readable `trainer_state.json`, which both write last. A checkpoint whose step is lower than one
 * already yielded is passed over: a session's steps only rise.
 *
 * @throws PeriodicEvalError `data` where the folder does not exist and `follow` is false.
 */
export async function* watchCheckpoints(
  folder: string,
  options: WatchOptions = {},
): AsyncGenerator<Checkpoint, void> {
  const { follow = true, pollSeconds = 2, signal } = options;
  let lastStep = -1;
  while (!signal?.aborted) {
    for (const checkpoint of await wholeCheckpoints(folder, follow)) {
      if (checkpoint.step <= lastStep) continue;
      lastStep = checkpoint.step;
      yield checkpoint;
      if (follow && checkpoint.maxSteps !== null && checkpoint.step >= checkpoint.maxSteps) return;
      if (signal?.aborted) return;
    }
    if (!follow) return;
    await sleep(pollSeconds * 1000, undefined, signal && { signal }).catch(() => undefined);
  }
}

async function wholeCheckpoints(folder: string, mayAppear: boolean): Promise<readonly Checkpoint[]> {
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
  const found: Checkpoint[] = [];
  for (const name of names) {
    const step = /^(?:checkpoint-|step_)(\d+)$/.exec(name)?.[1];
    if (step === undefined) continue;
    const path = join(folder, name);
    const maxSteps = await readMaxSteps(path);
    if (maxSteps !== undefined) found.push({ step: Number(step), path, maxSteps });
  }
  return found.sort((a, b) => a.step - b.step);
}

/** `max_steps` of the checkpoint, null where it does not say; undefined where the checkpoint is not whole (yet). */
async function readMaxSteps(path: string): Promise<number | null | undefined> {
  try {
    if (!(await stat(join(path, "config.json"))).isFile()) return undefined;
    const state: unknown = JSON.parse(await readFile(join(path, "trainer_state.json"), "utf8"));
    const maxSteps = (state as { max_steps?: unknown } | null)?.max_steps;
    return typeof maxSteps === "number" && maxSteps > 0 ? maxSteps : null;
  } catch {
    return undefined;
  }
}
