import {
  configError,
  functionSchema,
  integerFromZero,
  parseOptions,
  printable,
} from "@periodic-eval/contracts/options";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { stepPlaceholder } from "./checkpoint-folder.ts";
import type { LoggedMetrics } from "./trainer-state.ts";
import { folderFix, WatchedFolder } from "./watched-folder.ts";

/** A complete checkpoint of a training run in another process. */
export interface WatchedCheckpoint {
  /** Completed optimizer steps at the time of the checkpoint. */
  readonly step: number;
  readonly path: string;
  /** Optimizer steps of the whole run; null if the checkpoint does not contain this number. */
  readonly maxSteps: number | null;
  /** Passes over the data; omitted if the checkpoint does not contain this number. */
  readonly epoch?: number;
  /** `adapter`: an adapter in PEFT's format. */
  readonly kind: "full" | "adapter";
  /** The metrics that the trainer logged up to this step, such as its losses. */
  readonly losses: readonly LoggedMetrics[];
  /** The seed of the training; omitted if the checkpoint does not contain it. */
  readonly seed?: number | string;
  /** Checkpoints with later steps that are in the folder, complete or not: how far behind a reader is. */
  readonly waiting: number;
}

export interface WatchOptions {
  /** True (default): waits for new checkpoints until training has finished. False: yields the existing ones and ends. */
  readonly follow?: boolean;
  /** Seconds between two reads of the folder. Default 2. */
  readonly pollSeconds?: number;
  /**
   * Name of a checkpoint's folder with `{step}` in place of its step, and the path to the model in it:
   * `global_step_{step}/actor/huggingface`. Default: `checkpoint-{step}` and `step_{step}`, with `trainer_state.json`. A checkpoint that
   * the pattern names needs no such file.
   */
  readonly pattern?: string;
  /** `all` (default): every checkpoint. `latest`: only the newest one whenever the reader is ready for the next. */
  readonly order?: "all" | "latest";
  /** Yields only checkpoints after this step. */
  readonly after?: number;
  /**
   * A copy can complete a checkpoint after a later one was yielded. `skip` (default): the checkpoint is skipped with a line, because
   * the steps of a session only increase. `end`: the iteration of order `all` ends, for a reader that can begin again before it.
   */
  readonly late?: "skip" | "end";
  /** Receives lines about waiting and about skipped checkpoints. Default: warnings on the console. */
  readonly log?: (message: string) => void;
  /** Ends the iteration without an error. */
  readonly signal?: AbortSignal;
}

/** How an iteration ended. */
export interface WatchEnd {
  /** Whether training has finished: its latest checkpoint has reached `max_steps`, or says so. */
  readonly isFinished: boolean;
  /** Whether it ended for a checkpoint that became complete after a later one; see `late`. */
  readonly isLate: boolean;
}

const interval = "a finite number above 0";
const optionsSchema = z.strictObject({
  follow: z.boolean().default(true),
  pollSeconds: z
    .number(interval)
    .positive(interval)
    .meta({ fix: "Remove it for the default, 2 seconds." })
    .default(2),
  pattern: z
    .string("a name with {step} in it")
    .refine(
      (text) => text.split(stepPlaceholder).length === 2 && text.split("/")[0]!.includes(stepPlaceholder),
      {
        error: "a name with {step} once, in its first folder",
      },
    )
    .meta({ fix: "Write, for example, global_step_{step}." })
    .optional(),
  order: z.enum(["all", "latest"], '"all" or "latest"').default("all"),
  after: integerFromZero.optional(),
  late: z.enum(["skip", "end"], '"skip" or "end"').default("skip"),
  log: functionSchema<(message: string) => void>().default(
    () => (message: string) => console.warn(printable(`[periodic-eval] watchCheckpoints: ${message}`)),
  ),
  signal: z.instanceof(AbortSignal, { error: "an AbortSignal" }).optional(),
} satisfies Record<keyof WatchOptions, z.ZodType>);

/**
 * Yields each checkpoint of a folder once, in order of steps. A checkpoint is a subfolder `checkpoint-<N>` (transformers, TRL,
 * axolotl) or `step_<N>` (ours), or one that `pattern` names, with a full model (`config.json`) or an adapter
 * (`adapter_config.json`).
 *
 * A checkpoint is yielded when it is complete: `trainer_state.json` can be read, all files that the index names are there, each
 * safetensors file is as long as its header says, each JSON file can be parsed, and nothing in its folder has changed for
 * `pollSeconds`; for 30 s if a temporary file or blocks of zeros suggest that a program still copies it. A checkpoint that may still
 * become complete is not overtaken by a later one: with `follow` it is skipped, with a line, when it has not changed for a minute.
 *
 * If the folder also holds checkpoints of earlier trainings, which seed and first log entries distinguish, only those of the
 * training that wrote last are yielded. It has finished when its latest checkpoint has reached `max_steps` or contains `"finished": true`.
 * With `follow`, a line after a minute without a new checkpoint says which step or file is missing.
 *
 * @throws PeriodicEvalError The call throws `config` for a wrong option. The iteration throws `data` if the folder cannot be
 *   listed, if it does not exist and `follow` is false, and for a checkpoint whose weights FSDP or DeepSpeed has sharded, with
 *   the command that merges them.
 */
export function watchCheckpoints(
  folder: string,
  options: WatchOptions = {},
): AsyncGenerator<WatchedCheckpoint, WatchEnd> {
  const parsed = parseOptions("watchCheckpoints options", optionsSchema, options);
  if (typeof folder !== "string" || folder === "")
    throw configError({
      where: "watchCheckpoints folder",
      value: folder,
      expected: "a folder's path",
      fix: folderFix,
    });
  return watch(new WatchedFolder(folder, parsed), parsed);
}

type ParsedOptions = z.infer<typeof optionsSchema>;

async function* watch(
  folder: WatchedFolder,
  { follow, pollSeconds, after = -1, log, signal }: ParsedOptions,
): AsyncGenerator<WatchedCheckpoint, WatchEnd> {
  let lastStep = after;
  let isWaiting = false;
  while (!signal?.aborted) {
    const { next, steps, isSettling, isLate, isLast, sharded } = await folder.read(lastStep);
    if (next !== null) {
      lastStep = next.step;
      const { kind, state } = next.folder;
      const { maxSteps = null, epoch = null, losses = [], seed = null } = state ?? {};
      yield {
        step: next.step,
        path: next.path,
        maxSteps,
        ...(epoch !== null && { epoch }),
        kind,
        losses,
        ...(seed !== null && { seed }),
        waiting: steps.filter((later) => later > lastStep).length,
      };
      continue;
    }
    if (isLate) return { isFinished: false, isLate };
    if (sharded !== null) throw sharded;
    if (follow ? isLast : !isSettling) return { isFinished: isLast, isLate };
    if (follow && lastStep === -1 && !isWaiting && !isSettling) {
      log(`no checkpoint in ${folder.path} yet, waiting`);
      isWaiting = true;
    }
    await sleep(pollSeconds * 1000, undefined, signal && { signal }).catch(() => undefined);
  }
  return { isFinished: false, isLate: false };
}
