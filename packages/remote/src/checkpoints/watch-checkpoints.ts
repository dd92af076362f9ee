import { PeriodicEvalError } from "@periodic-eval/core";
import { configError, parseOptions, printable } from "@periodic-eval/core/internal";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { readCheckpointFolder } from "./checkpoint-folder.ts";
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
   * the pattern names needs no such file: it is complete when it has not changed for `pollSeconds`.
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
 * A checkpoint is yielded when it is complete: `trainer_state.json` can be read, which these trainers write after the weights, and
 * each safetensors file is as long as its header says. An incomplete checkpoint before a complete one, and one that is deleted
 * before it could be yielded, is skipped with a line. Skips a checkpoint with a lower step than the last one that it yielded,
 * because the steps of a session only increase. Training has finished when the newest checkpoint has reached `max_steps` or
 * contains `"finished": true`.
 *
 * @throws PeriodicEvalError The call throws `config` for a wrong option. The iteration throws `data` if the folder cannot be
 *   listed, or if it does not exist and `follow` is false.
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
  for (let polls = 1; !signal?.aborted;) {
    const { complete, steps, isSettling, isLast } = await folder.read(lastStep, order);
    if (complete !== null) {
      lastStep = complete.step;
      yield { ...complete, waiting: steps.filter((later) => later > lastStep).length };
      continue;
    }
    // A checkpoint without a state file is complete if it does not change until the next poll.
    const mayComplete = isSettling && polls === 1;
    if (follow ? isLast : !mayComplete) return { isFinished: isLast };
    if (follow && lastStep === -1 && !isWaiting) log(`no checkpoint in ${folder.path} yet, waiting`);
    isWaiting = true;
    await sleep(pollSeconds * 1000, undefined, signal && { signal }).catch(() => undefined);
    polls += 1;
  }
  return { isFinished: false };
}

interface Read {
  /** The next checkpoint to yield; null if none is complete. */
  readonly complete: Omit<WatchedCheckpoint, "waiting"> | null;
  /** The steps of all checkpoints in the folder, complete or not. */
  readonly steps: readonly number[];
  /** Whether a checkpoint will be complete if it does not change. */
  readonly isSettling: boolean;
  /** Whether nothing is left to yield and training has finished. */
  readonly isLast: boolean;
}

const noState: TrainerState = { maxSteps: null, epoch: null, isFinished: false, losses: [] };

interface Candidate {
  readonly name: string;
  readonly step: number;
  readonly path: string;
}

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
  /** When a checkpoint without a state file was first seen as it is, by path. */
  readonly #unchanged = new Map<string, { readonly signature: string; readonly since: number }>();

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
    let isSettling = false;
    for (const one of order === "latest" ? later.toReversed() : later) {
      const found = await this.#readComplete(one);
      if (found === "settling") isSettling = true;
      if (found === null) this.#reportUnfinished(one.name);
      if (found === null || found === "settling") continue;
      this.#reportIncomplete(order === "latest" ? [] : later.filter((other) => other.step < one.step));
      for (const { name, step: at } of later) if (at <= one.step) this.#seen.delete(name);
      return { complete: found, steps, isSettling, isLast: false };
    }
    const isLast = later.length === 0 && (await this.#hasFinished(candidates.at(-1)));
    return { complete: null, steps, isSettling, isLast };
  }

  async #hasFinished(newest: Candidate | undefined): Promise<boolean> {
    const { maxSteps, isFinished } = (newest && (await readCheckpointFolder(newest.path))?.state) ?? noState;
    return isFinished || (maxSteps !== null && newest!.step >= maxSteps);
  }

  async #readComplete({
    step: at,
    path,
  }: Candidate): Promise<Omit<WatchedCheckpoint, "waiting"> | "settling" | null> {
    const found = await readCheckpointFolder(path);
    if (found === null) return null;
    const { kind, state, signature } = found;
    if (this.#options.pattern === undefined) {
      if (state === null) return null;
    } else if (!this.#isUnchanged(path, signature)) return "settling";
    const { maxSteps, epoch, losses } = state ?? noState;
    return { step: at, path, maxSteps, ...(epoch !== null && { epoch }), kind, losses };
  }

  #isUnchanged(path: string, signature: string): boolean {
    const now = performance.now();
    const known = this.#unchanged.get(path);
    if (known?.signature === signature)
      // Timers may fire a little early.
      return now - known.since >= this.#options.pollSeconds * 1000 - 5;
    this.#unchanged.set(path, { signature, since: now });
    return false;
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
    return names
      .flatMap((name) => {
        const found = stepOf(name, pattern);
        return found === null ? [] : [{ name, step: found.step, path: join(this.path, name, ...found.rest) }];
      })
      .toSorted((a, b) => a.step - b.step);
  }
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
