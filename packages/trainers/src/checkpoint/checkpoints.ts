import { join, rename } from "@periodic-eval/store/platform";
import { mkdir, readdir, writeFile } from "@periodic-eval/store/browser";
import { PeriodicEvalError } from "@periodic-eval/core";
import {
  makeFolder,
  putBackFolders,
  removeLeftovers,
  removeRunLeftovers,
  removeWholeFolder,
  storeError,
  writeWholeFolder,
} from "@periodic-eval/store";
import {
  stateFile,
  hashesIn,
  readState,
  stateText,
  verifyCheckpoint,
  type PhaseStart,
  type TrainerState,
} from "./trainer-state.ts";

export interface Checkpoint {
  readonly path: string;
  readonly state: TrainerState;
}

/** The checkpoints of one phase: `<run>/checkpoints/<phase>/step_<N>/`, N completed optimizer steps. */
export interface Checkpoints {
  /**
   * Returns the newest complete checkpoint; null if there are none. Warns of newer damaged ones and moves them to
   * `<run>/checkpoints/.superseded`, where training does not overwrite them. Warns of a damaged or missing best checkpoint and
   * forgets it.
   *
   * @throws PeriodicEvalError `store` if all are damaged or the folder cannot be listed: training from the start would
   *   overwrite checkpoints that can perhaps be repaired.
   */
  newest(): Promise<Checkpoint | null>;
  /** Returns the start of the phase from the newest readable state; undefined if there is none. Changes nothing. */
  startOfNewest(): Promise<PhaseStart | undefined>;
  /** Returns the newest complete checkpoint at or before a step; null if there is none. */
  atOrBefore(step: number): Promise<Checkpoint | null>;
  /** Returns the folder of the checkpoint of a step. */
  folderOf(step: number): string;
  /**
   * Writes a checkpoint atomically; `fill` writes all files but the state. Then removes all checkpoints but the newest `keep`,
   * the state's best and its last clean one. Returns the folder.
   */
  save(state: Omit<TrainerState, "files">, fill: (folder: string) => Promise<void>): Promise<string>;
  /**
   * Removes what interrupted processes left in the run: drafts, half-removed checkpoints and temporary files, and checkpoints
   * that `save` would have removed. The caller holds the run's lock.
   *
   * @param resumed The state of the newest checkpoint; null if there is none.
   */
  tidy(resumed: TrainerState | null): Promise<void>;
  /** Moves all checkpoints to `<run>/checkpoints/.superseded`, so that a run that starts over overwrites nothing. */
  setAside(): Promise<void>;
}

export interface CheckpointsOptions {
  readonly runDir: string;
  readonly phase: string;
  readonly keep: number;
  warn(where: string, message: string): void;
}

export function checkpointsOf({ runDir, phase, keep, warn }: CheckpointsOptions): Checkpoints {
  const folder = join(runDir, "checkpoints", phase);
  const folderOf = (step: number) => join(folder, `step_${step}`);
  const setDamagedAside = async (damaged: ReadonlyMap<number, string>): Promise<void> => {
    if (damaged.size === 0) return;
    const aside = await newAsideFolder(runDir, phase);
    await mkdir(aside);
    for (const [step, why] of damaged) {
      await rename(folderOf(step), join(aside, `step_${step}`));
      warn(folderOf(step), `skipped a damaged checkpoint: ${why}; moved to ${aside}`);
    }
  };
  const removeOlder = async ({
    step: newest,
    best,
    clean_step: clean,
  }: Pick<TrainerState, "step" | "best" | "clean_step">): Promise<void> => {
    const steps = await stepsIn(folder);
    const lastClean = clean === null ? undefined : steps.find((step) => step <= clean);
    for (const step of steps.filter((each) => each <= newest).slice(keep)) {
      if (step !== best?.step && step !== lastClean) await removeWholeFolder(folderOf(step));
    }
    await removeLeftovers(folder);
  };
  return {
    folderOf,
    async newest() {
      await putBackFolders(folder);
      const damaged = new Map<number, string>();
      for (const step of await stepsIn(folder)) {
        const path = folderOf(step);
        const state = await verifyCheckpoint(path);
        if (typeof state === "string") {
          damaged.set(step, state);
          continue;
        }
        await setDamagedAside(damaged);
        return { path, state: await withoutDamagedBest(state, folderOf, warn) };
      }
      if (damaged.size > 0)
        throw allDamagedError(
          folder,
          [...damaged].map(([step, why]) => `step_${step}: ${why}`),
        );
      return null;
    },
    atOrBefore: (last) => newestUpTo(folder, last),
    async startOfNewest() {
      // A folder that cannot be listed is an error of the later resume.
      for (const step of await stepsIn(folder).catch(() => [])) {
        const state = await readState(folderOf(step));
        if (typeof state !== "string") return state.start;
      }
      return undefined;
    },
    async save(state, fill) {
      const path = folderOf(state.step);
      await writeWholeFolder(path, async (draft) => {
        await fill(draft);
        const whole: TrainerState = { ...state, files: await hashesIn(draft) };
        await writeFile(join(draft, stateFile), stateText(whole));
      });
      await removeOlder(state);
      return path;
    },
    async tidy(resumed) {
      if (resumed !== null) await removeOlder(resumed);
      await removeRunLeftovers(runDir);
    },
    async setAside() {
      await putBackFolders(folder);
      if ((await stepsIn(folder)).length === 0) return;
      await rename(folder, await newAsideFolder(runDir, phase));
    },
  };
}

async function newestUpTo(folder: string, last: number): Promise<Checkpoint | null> {
  for (const step of (await stepsIn(folder)).filter((step) => step <= last)) {
    const path = join(folder, `step_${step}`);
    const state = await verifyCheckpoint(path);
    if (typeof state !== "string") return { path, state };
  }
  return null;
}

/** Creates the parent, and returns the path of a new folder for superseded checkpoints, numbered after all existing ones. */
async function newAsideFolder(runDir: string, phase: string): Promise<string> {
  const parent = join(runDir, "checkpoints", ".superseded");
  await makeFolder(parent);
  // Numbers may have gaps, and a folder may belong to another phase whose name starts with this one and a dot.
  const taken = (await readdir(parent)).map((name) =>
    name.startsWith(`${phase}.`) ? Number(/^\d+$/.exec(name.slice(phase.length + 1))?.[0] ?? 0) : 0,
  );
  return join(parent, `${phase}.${Math.max(0, ...taken) + 1}`);
}

/** Returns the state, without its best if that checkpoint is damaged or missing. */
async function withoutDamagedBest(
  state: TrainerState,
  folderOf: Checkpoints["folderOf"],
  warn: CheckpointsOptions["warn"],
): Promise<TrainerState> {
  if (state.best === null || state.best.step === state.step) return state;
  const path = folderOf(state.best.step);
  const best = await verifyCheckpoint(path);
  if (typeof best !== "string") return state;
  warn(path, `the best checkpoint is damaged, and another one will be kept: ${best}`);
  return { ...state, best: null };
}

function allDamagedError(folder: string, reasons: readonly string[]): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "store",
    where: folder,
    got: `no complete checkpoint (${reasons.join("; ")})`,
    expected: "a checkpoint with unchanged files",
    fix: 'Restore the files, or start the phase over with resume: "never", which moves these checkpoints away.',
  });
}

/** Returns the steps that have a folder, newest first. */
export async function stepsIn(folder: string): Promise<number[]> {
  const names = await namesIn(folder);
  return names
    .flatMap((name) => /^step_(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => b - a);
}

/** Lists a folder; empty if it does not exist. An unreadable folder is an error, because training would overwrite it. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw storeError(folder, cause, "a folder of checkpoints that can be listed");
  }
}
