import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { shardedCheckpoint } from "@periodic-eval/data";
import { workingSeconds } from "@periodic-eval/store";
import {
  candidatesOf,
  type Candidate,
  readCheckpointFolder,
  type CheckpointFolder,
} from "./checkpoint-folder.ts";
import { CheckpointObserver, type Finding } from "./checkpoint-observer.ts";
import {
  readTrainerStates,
  type StateCache,
  hasFinished,
  tellTrainings,
  type Trainings,
} from "./trainer-state.ts";

export interface FolderOptions {
  readonly follow: boolean;
  readonly pollSeconds: number;
  readonly pattern?: string | undefined;
  readonly order: "all" | "latest";
  readonly late: "skip" | "end";
  readonly log: (message: string) => void;
}

/** The result of a read of the folder. */
export interface FolderRead {
  /** The next checkpoint to yield; null if none is complete. */
  readonly next: (Candidate & { readonly folder: CheckpointFolder }) | null;
  /** The steps of all checkpoints of the training, complete or not. */
  readonly steps: readonly number[];
  /** Whether a checkpoint may soon be complete. */
  readonly isSettling: boolean;
  /** Whether a checkpoint is complete only after a later one was yielded, and `late` is "end". */
  readonly isLate: boolean;
  /** The error for the first checkpoint whose weights are sharded; null if there is none. */
  readonly sharded: PeriodicEvalError | null;
  /** Whether nothing is left to yield and training has finished. */
  readonly isLast: boolean;
}

type Observed = Candidate & { readonly finding: Finding };

/** Seconds for which an incomplete checkpoint must not change before a later one may be yielded instead. */
const abandonedSeconds = 60;
/** Seconds without a new checkpoint after which a line says what is waited for. */
const idleSeconds = 60;

export const folderFix = "Give the folder that holds the checkpoint-<N> or step_<N> folders.";

/** A folder of checkpoints, and what earlier reads have seen in it. */
export class WatchedFolder {
  readonly path: string;
  readonly #options: FolderOptions;
  readonly #observer: CheckpointObserver;
  readonly #states: StateCache = new Map();
  /** Checkpoints that were in the folder and not yielded, by name. */
  readonly #seen = new Map<string, number>();
  /** Names of checkpoints that need no more attention although their step is not later than the last one; null at first. */
  #done: Set<string> | null = null;
  /** Paths of checkpoints of earlier trainings that were reported. */
  readonly #reported = new Set<string>();
  /** When the last checkpoint was yielded or the last line about waiting was logged, in milliseconds. */
  #idleSince: number | null = null;
  #idleText = "";

  constructor(path: string, options: FolderOptions) {
    this.path = path;
    this.#options = options;
    const { pollSeconds, pattern, log } = options;
    this.#observer = new CheckpointObserver({
      quietSeconds: pollSeconds,
      needsState: pattern === undefined,
      log,
    });
  }

  /** Reads the folder and chooses the next checkpoint after a step. */
  async read(lastStep: number): Promise<FolderRead> {
    const { follow, order, late } = this.#options;
    const now = 1000 * workingSeconds();
    const candidates = await this.#list();
    this.#reportDeleted(lastStep, candidates);
    const states = await readTrainerStates(candidates, this.#states);
    const trainings = tellTrainings(states);
    this.#reportEarlier(candidates, trainings, lastStep);
    const current = candidates.filter(({ path }) => !trainings.earlier.has(path));
    const steps = current.map(({ step }) => step);
    const observed = await this.#observe(current, lastStep, now);
    const later = observed.filter(({ step }) => step > lastStep);
    const behind = observed.filter(({ step }) => step <= lastStep);
    const common = { steps, isSettling: false, isLate: false, sharded: null, isLast: false };
    if (order === "all" && this.#hasLate(behind)) return { ...common, next: null, isLate: late === "end" };
    for (const { finding, ...candidate } of order === "latest" ? later.toReversed() : later) {
      if (finding.status === "complete") {
        this.#markRead(candidate, later, now);
        return { ...common, next: { ...candidate, folder: finding.folder } };
      }
      // A later checkpoint does not overtake one that may still become complete.
      if (order === "latest" ? finding.status === "settling" : this.#mayComplete(finding)) break;
    }
    const isSettling = later.some(({ finding }) => isWritten(finding));
    const isLast =
      later.length === 0 &&
      (late === "skip" || !behind.some(({ finding }) => this.#mayComplete(finding))) &&
      hasFinished(states, trainings);
    const sharded = isSettling ? null : await firstSharded(later);
    if (follow && !isLast && sharded === null)
      this.#reportIdle(later, { now, lastStep, maxSteps: trainings.newest?.state.maxSteps ?? null });
    if (!follow && !isSettling) this.#reportUnread(later);
    return { ...common, next: null, isSettling, isLast, sharded };
  }

  /** Observes all checkpoints that are not done, also those of which only later reads ask, so that these need not wait. */
  async #observe(
    candidates: readonly Candidate[],
    lastStep: number,
    now: number,
  ): Promise<readonly Observed[]> {
    // The reader knows those before the step where the iteration begins.
    this.#done ??= await this.#completeUntil(lastStep, candidates);
    const observed: Observed[] = [];
    for (const candidate of candidates) {
      if (candidate.step <= lastStep && this.#done.has(candidate.name)) continue;
      const finding = await this.#observer.observe(candidate.path, join(this.path, candidate.name), now);
      observed.push({ ...candidate, finding });
    }
    return observed;
  }

  async #completeUntil(lastStep: number, candidates: readonly Candidate[]): Promise<Set<string>> {
    const names = new Set<string>();
    for (const { name, step, path } of candidates) {
      if (step > lastStep) continue;
      const folder = await readCheckpointFolder(path);
      if (folder !== null && (this.#options.pattern !== undefined || folder.state !== null)) names.add(name);
    }
    return names;
  }

  /** Whether a checkpoint may become complete without a new start of its trainer. */
  #mayComplete(finding: Finding): boolean {
    if (finding.status === "complete") return true;
    return (
      isWritten(finding) ||
      (this.#options.follow && finding.status === "incomplete" && finding.seconds < abandonedSeconds)
    );
  }

  #markRead({ name, step: at }: Candidate, later: readonly Observed[], now: number): void {
    const { order, log } = this.#options;
    for (const other of later) if (other.step <= at) this.#seen.delete(other.name);
    this.#done!.add(name);
    this.#idleSince = now;
    this.#idleText = "";
    for (const { name: other, step, finding } of order === "latest" ? [] : later)
      if (step < at && finding.status !== "complete")
        log(
          `${other} is incomplete although a later checkpoint is complete, and is skipped: ${finding.lacks}`,
        );
  }

  /** Whether a checkpoint is complete only now, after a later one was yielded. */
  #hasLate(behind: readonly Observed[]): boolean {
    const late = behind.filter(({ finding }) => finding.status === "complete");
    for (const { name } of late) {
      this.#done!.add(name);
      if (this.#options.late === "skip")
        this.#options.log(`${name} is complete only after a later checkpoint was read, and is skipped`);
    }
    return late.length > 0 && this.#options.late === "end";
  }

  #reportDeleted(lastStep: number, present: readonly Candidate[]): void {
    const names = new Set(present.map(({ name }) => name));
    for (const [name, at] of this.#seen) {
      if (names.has(name)) continue;
      this.#seen.delete(name);
      if (at > lastStep) this.#options.log(`${name} was deleted before it was read, and is skipped`);
    }
    for (const { name, step } of present) if (step > lastStep) this.#seen.set(name, step);
  }

  #reportEarlier(candidates: readonly Candidate[], { newest, earlier }: Trainings, lastStep: number): void {
    for (const { name, path, step } of candidates) {
      const difference = earlier.get(path);
      if (difference === undefined || this.#reported.has(path) || step <= lastStep) continue;
      this.#reported.add(path);
      this.#options.log(
        `${name} is of an earlier training than step ${newest!.step}, which was written later, and is not read: ${difference}`,
      );
    }
  }

  #reportUnread(later: readonly Observed[]): void {
    for (const { name, finding } of later)
      if (finding.status === "incomplete")
        this.#options.log(`${name} is incomplete, and is not read: ${finding.lacks}`);
  }

  /** Says after a minute without a checkpoint what is waited for, and again when that changes. */
  #reportIdle(
    later: readonly Observed[],
    { now, lastStep, maxSteps }: { now: number; lastStep: number; maxSteps: number | null },
  ): void {
    this.#idleSince ??= now;
    const seconds = (now - this.#idleSince) / 1000;
    if (seconds < idleSeconds) return;
    const [first] = later.flatMap(({ name, finding }) =>
      finding.status === "complete" ? [] : [`${name}: ${finding.lacks}`],
    );
    const text = first ?? nextText(lastStep, maxSteps);
    if (text !== this.#idleText)
      this.#options.log(
        `no new checkpoint in ${this.path} for ${Math.round(seconds)} s, waiting for ${text}`,
      );
    this.#idleText = text;
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

const isWritten = ({ status }: Finding): boolean => status === "settling" || status === "changing";

function nextText(lastStep: number, maxSteps: number | null): string {
  if (lastStep < 0) return "the first one";
  const next = `one after step ${lastStep}`;
  return maxSteps === null
    ? `${next}: the trainer writes no max_steps, so only "finished": true in trainer_state.json ends the wait`
    : `${next} of ${maxSteps}`;
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
