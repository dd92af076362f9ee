import { PeriodicEvalError } from "@periodic-eval/core";
import { configError, parseOptions, printable, shardedCheckpoint } from "@periodic-eval/core/internal";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { hasZeros, readCheckpointFolder } from "./checkpoint-folder.ts";
import type { LoggedMetrics, TrainerState } from "./trainer-state.ts";

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
  /** Receives lines about waiting and about skipped checkpoints. Default: warnings on the console. */
  readonly log?: (message: string) => void;
  /** Ends the iteration without an error. */
  readonly signal?: AbortSignal;
}

/** How an iteration ended. */
export interface WatchEnd {
  /** Whether training has finished: the newest checkpoint has reached `max_steps`, or says so. */
  readonly isFinished: boolean;
}

const interval = "a finite number above 0";
const step = "{step}";
const optionsSchema = z.strictObject({
  follow: z.boolean().default(true),
  pollSeconds: z
    .number(interval)
    .positive(interval)
    .meta({ fix: "Remove it for the default, 2 seconds." })
    .default(2),
  pattern: z
    .string("a name with {step} in it")
    .refine((text) => text.split(step).length === 2 && text.split("/")[0]!.includes(step), {
      error: "a name with {step} once, in its first folder",
    })
    .meta({ fix: "Write, for example, global_step_{step}." })
    .optional(),
  order: z.enum(["all", "latest"], '"all" or "latest"').default("all"),
  after: z.int("an integer of 0 or more").min(0, "an integer of 0 or more").optional(),
  log: z
    .custom<(message: string) => void>((value) => typeof value === "function", "a function")
    .default(
      () => (message: string) => console.warn(printable(`[periodic-eval] watchCheckpoints: ${message}`)),
    ),
  signal: z.instanceof(AbortSignal, { error: "an AbortSignal" }).optional(),
} satisfies Record<keyof WatchOptions, z.ZodType>);

const folderFix = "Give the folder that holds the checkpoint-<N> or step_<N> folders.";

/**
 * Yields each checkpoint of a folder once, in order of steps. A checkpoint is a subfolder `checkpoint-<N>` (transformers, TRL,
 * axolotl) or `step_<N>` (ours), or one that `pattern` names, with a full model (`config.json`) or an adapter
 * (`adapter_config.json`).
 *
 * A checkpoint is yielded when it is complete: `trainer_state.json` can be read, which these trainers write after the weights,
 * each safetensors file is as long as its header says, and no file has changed for `pollSeconds`, or for 30 s if blocks of a
 * file are zeros, as they are while a program copies into a file whose size it has reserved. An incomplete checkpoint before a complete one, and one that is deleted
 * before it could be yielded, is skipped with a line. Skips a checkpoint with a lower step than the last one that it yielded,
 * because the steps of a session only increase. Training has finished when the newest checkpoint has reached `max_steps` or
 * contains `"finished": true`.
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
  return watch(new Folder(folder, parsed), parsed);
}

type ParsedOptions = z.infer<typeof optionsSchema>;

async function* watch(
  folder: Folder,
  { follow, pollSeconds, order, after = -1, log, signal }: ParsedOptions,
): AsyncGenerator<WatchedCheckpoint, WatchEnd> {
  let lastStep = after;
  let isWaiting = false;
  while (!signal?.aborted) {
    const { complete, steps, isSettling, isLast, sharded } = await folder.read(lastStep, order);
    if (complete !== null) {
      lastStep = complete.step;
      yield { ...complete, waiting: steps.filter((later) => later > lastStep).length };
      continue;
    }
    if (sharded !== null) throw sharded;
    if (follow ? isLast : !isSettling) return { isFinished: isLast };
    if (follow && lastStep === -1 && !isWaiting && !isSettling) {
      log(`no checkpoint in ${folder.path} yet, waiting`);
      isWaiting = true;
    }
    await sleep(pollSeconds * 1000, undefined, signal && { signal }).catch(() => undefined);
  }
  return { isFinished: false };
}

interface Read {
  /** The next checkpoint to yield; null if none is complete. */
  readonly complete: Omit<WatchedCheckpoint, "waiting"> | null;
  /** The steps of all checkpoints in the folder, complete or not. */
  readonly steps: readonly number[];
  /** Whether the next checkpoint will be complete if it does not change. */
  readonly isSettling: boolean;
  /** The error for the first checkpoint whose weights are sharded; null if there is none. */
  readonly sharded: PeriodicEvalError | null;
  /** Whether nothing is left to yield and training has finished. */
  readonly isLast: boolean;
}

const noState: TrainerState = { maxSteps: null, epoch: null, isFinished: false, losses: [], seed: null };

interface Candidate {
  readonly name: string;
  readonly step: number;
  readonly path: string;
}

interface Unchanged {
  readonly signature: string;
  /** In milliseconds. */
  readonly since: number;
  /** Whether a file has blocks of zeros; absent until the files were looked at. */
  readonly hasZeros?: true;
}

/** Seconds for which a checkpoint with blocks of zeros must not change. */
const zerosSeconds = 30;

/** Seconds after which a checkpoint that stays incomplete is reported. */
const incompleteSeconds = 60;

/** A folder of checkpoints, and what earlier reads have seen in it. */
class Folder {
  readonly path: string;
  readonly #options: ParsedOptions;
  /** Checkpoints that were in the folder and not yielded, by name. */
  readonly #seen = new Map<string, number>();
  /** When a checkpoint was first found incomplete, by name, in milliseconds; null once that was reported. */
  readonly #incompleteSince = new Map<string, number | null>();
  /** Since when a checkpoint is as it is, by path. */
  readonly #unchanged = new Map<string, Unchanged>();
  /** Checkpoints whose blocks of zeros were reported, by path. */
  readonly #reportedZeros = new Set<string>();

  constructor(path: string, options: ParsedOptions) {
    this.path = path;
    this.#options = options;
  }

  /** Reads the folder and chooses the next checkpoint after a step. */
  async read(lastStep: number, order: "all" | "latest"): Promise<Read> {
    const candidates = await this.#list();
    const later = candidates.filter((one) => one.step > lastStep);
    this.#reportDeleted(lastStep, new Set(candidates.map(({ name }) => name)));
    const steps = candidates.map((one) => one.step);
    await this.#observe(later);
    let isSettling = false;
    for (const one of order === "latest" ? later.toReversed() : later) {
      const found = await this.#readComplete(one);
      // A later checkpoint does not overtake one that is nearly complete, which would then be skipped.
      isSettling = found === "settling" || (found === "changed" && this.#options.follow && order === "all");
      if (isSettling) break;
      if (found === null) this.#reportUnfinished(one.name);
      if (found === null || typeof found === "string") continue;
      this.#reportIncomplete(order === "latest" ? [] : later.filter((other) => other.step < one.step));
      for (const { name, step: at } of later) if (at <= one.step) this.#seen.delete(name);
      return { complete: found, steps, isSettling, isLast: false, sharded: null };
    }
    const isLast = later.length === 0 && (await this.#hasFinished(candidates.at(-1)));
    const sharded = isSettling ? null : await firstSharded(later);
    return { complete: null, steps, isSettling, isLast, sharded };
  }

  async #hasFinished(newest: Candidate | undefined): Promise<boolean> {
    const { maxSteps, isFinished } = (newest && (await readCheckpointFolder(newest.path))?.state) ?? noState;
    return isFinished || (maxSteps !== null && newest!.step >= maxSteps);
  }

  async #readComplete({
    step: at,
    path,
  }: Candidate): Promise<Omit<WatchedCheckpoint, "waiting"> | "settling" | "changed" | null> {
    const found = await readCheckpointFolder(path);
    if (found === null) return null;
    const { kind, state, signature } = found;
    if (this.#options.pattern === undefined && state === null) return null;
    const settled = await this.#settled(path, signature);
    if (settled !== "settled") return settled;
    const { maxSteps, epoch, losses, seed } = state ?? noState;
    return {
      step: at,
      path,
      maxSteps,
      ...(epoch !== null && { epoch }),
      kind,
      losses,
      ...(seed !== null && { seed }),
    };
  }

  /** Begins to observe checkpoints, also those of which only later reads ask, so that these need not wait. */
  async #observe(later: readonly Candidate[]): Promise<void> {
    for (const { path } of later) {
      const found = this.#unchanged.has(path) ? null : await readCheckpointFolder(path);
      if (found !== null) this.#unchanged.set(path, { signature: found.signature, since: performance.now() });
    }
  }

  /** Returns whether a checkpoint is no longer written, or may still be. */
  async #settled(path: string, signature: string): Promise<"settled" | "settling" | "changed"> {
    const now = performance.now();
    const known = this.#unchanged.get(path);
    if (known?.signature !== signature) {
      this.#unchanged.set(path, { signature, since: now });
      return known === undefined ? "settling" : "changed";
    }
    // Timers may fire a little early.
    const isFor = (seconds: number) => now - known.since >= seconds * 1000 - 5;
    if (!isFor(this.#options.pollSeconds)) return "settling";
    if (isFor(zerosSeconds) || !(known.hasZeros ?? (await hasZeros(path)))) return "settled";
    if (!this.#reportedZeros.has(path))
      this.#options.log(
        `${path} has blocks of zeros, as a file has that is still copied: it is read if it does not change for ${zerosSeconds} s`,
      );
    this.#reportedZeros.add(path);
    this.#unchanged.set(path, { ...known, hasZeros: true });
    return "settling";
  }

  #reportDeleted(lastStep: number, present: ReadonlySet<string>): void {
    for (const [name, at] of this.#seen) {
      if (present.has(name)) continue;
      this.#seen.delete(name);
      if (at > lastStep) this.#options.log(`${name} was deleted before it was read, and is skipped`);
    }
    for (const name of present) {
      const at = stepOf(name, this.#options.pattern)?.step ?? -1;
      if (at > lastStep) this.#seen.set(name, at);
    }
  }

  /** Reports once that a checkpoint stays incomplete: its trainer may have crashed, or its disk may be full. */
  #reportUnfinished(name: string): void {
    const now = performance.now();
    const since = this.#incompleteSince.get(name);
    if (since === undefined) this.#incompleteSince.set(name, now);
    const seconds = (now - (since ?? now)) / 1000;
    if (seconds < incompleteSeconds) return;
    this.#incompleteSince.set(name, null);
    this.#options.log(
      `${name} has been incomplete for ${Math.round(seconds)} s, waiting: a file is missing or shorter than it should be, or ` +
        "trainer_state.json cannot be parsed",
    );
  }

  #reportIncomplete(earlier: readonly Candidate[]): void {
    for (const { name } of earlier)
      this.#options.log(`${name} is incomplete although a later checkpoint is complete, and is skipped`);
  }

  /** Returns the checkpoints of the folder in order of steps, complete or not. */
  async #list(): Promise<readonly Candidate[]> {
    const { follow, pattern } = this.#options;
    const names = await readdir(this.path).catch((cause: NodeJS.ErrnoException) => {
      if (follow && cause.code === "ENOENT") return [];
      throw new PeriodicEvalError({
        code: "data",
        where: this.path,
        got: cause.code ?? cause.message,
        expected: "a folder of checkpoints",
        fix: folderFix,
        cause,
      });
    });
    return candidatesOf(this.path, names, pattern);
  }
}

function candidatesOf(folder: string, names: readonly string[], pattern?: string): readonly Candidate[] {
  return names
    .flatMap((name) => {
      const found = stepOf(name, pattern);
      return found === null ? [] : [{ name, step: found.step, path: join(folder, name, ...found.rest) }];
    })
    .toSorted((a, b) => a.step - b.step);
}

/** Returns the paths of a folder's checkpoints by step, complete or not; none if the folder cannot be listed. */
export async function checkpointPaths(folder: string, pattern?: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => []);
  return candidatesOf(folder, names, pattern).map(({ path }) => path);
}

/** Returns the error for the first checkpoint whose weights are sharded, unless it is still written; null if there is none. */
async function firstSharded(candidates: readonly Candidate[]): Promise<PeriodicEvalError | null> {
  for (const { path } of candidates) {
    const names = await readdir(path).catch((): string[] => []);
    const sharded =
      names.includes("trainer_state.json") || !names.includes("config.json")
        ? await shardedCheckpoint(path, names)
        : null;
    if (sharded === null) continue;
    const expected = "whole weights in safetensors, or an adapter";
    return new PeriodicEvalError({ code: "data", where: path, ...sharded, expected });
  }
  return null;
}

/** Returns the step in a folder's name, and the path to the model in the folder; null for another folder. */
function stepOf(
  name: string,
  pattern: string | undefined,
): { readonly step: number; readonly rest: readonly string[] } | null {
  const [first = "", ...rest] = pattern?.split("/") ?? [];
  const [before, behind] = first.split(step).map((text) => text.replaceAll(/[^\w-]/g, String.raw`\$&`));
  const digits = (
    pattern === undefined ? /^(?:checkpoint-|step_)(\d+)$/ : new RegExp(`^${before}(\\d+)${behind}$`)
  ).exec(name)?.[1];
  const at = Number(digits);
  return Number.isSafeInteger(at) ? { step: at, rest } : null;
}
