import { mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { storeError } from "@periodic-eval/core/snapshots";
import {
  stateFile,
  hashFiles,
  readState,
  stateText,
  verifyCheckpoint,
  type PhaseStart,
  type TrainerState,
} from "./trainer-state.ts";
import { putBackFolders, removeLeftovers, removeWholeFolder, writeWholeFolder } from "./whole-folder.ts";

export interface Checkpoint {
  readonly path: string;
  readonly state: TrainerState;
}

/** The checkpoints of one phase: `<run>/checkpoints/<phase>/step_<N>/`, N completed optimizer steps. */
export interface Checkpoints {
  /**
   * The newest whole one, null where there was never one. Newer torn ones are told of and moved to
   * `<run>/checkpoints/.superseded`, where training does not write over them; a best that is torn or gone is told of and
   * forgotten.
   *
   * @throws PeriodicEvalError `store` where all are torn, or the folder cannot be listed: a training from the start would
   *   write over what may be mended.
   */
  newest(): Promise<Checkpoint | null>;
  /** What the newest that tells says that the phase began from; undefined where none does. Changes nothing. */
  startOfNewest(): Promise<PhaseStart | undefined>;
  /** Of which there is a folder, whole or torn, newest first. */
  steps(): Promise<readonly number[]>;
  /** The folder of the checkpoint of a step. */
  folderOf(step: number): string;
  /**
   * Writes one whole, `fill` giving all files but the state; then removes all but the newest `keep` and the best that the
   * state names. Returns its folder.
   */
  save(state: Omit<TrainerState, "files">, fill: (folder: string) => Promise<void>): Promise<string>;
  /** Moves all there are to `<run>/checkpoints/.superseded`: a run that starts anew overwrites nothing. */
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
  /** Where what is set aside now may go: a folder that is not there yet, behind all that are. */
  const asideFolder = async (): Promise<string> => {
    const all = join(runDir, "checkpoints", ".superseded");
    await mkdir(all, { recursive: true });
    // One may have been removed, or belong to a phase whose name goes on behind the point.
    const taken = (await readdir(all)).map((name) =>
      name.startsWith(`${phase}.`) ? Number(/^\d+$/.exec(name.slice(phase.length + 1))?.[0] ?? 0) : 0,
    );
    return join(all, `${phase}.${Math.max(0, ...taken) + 1}`);
  };
  const setTornAside = async (torn: ReadonlyMap<number, string>): Promise<void> => {
    if (torn.size === 0) return;
    const aside = await asideFolder();
    await mkdir(aside);
    for (const [step, why] of torn) {
      await rename(folderOf(step), join(aside, `step_${step}`));
      warn(folderOf(step), `torn and passed over: ${why}; moved to ${aside}`);
    }
  };
  /** Without the best where it is no longer there. */
  const withBest = async (state: TrainerState): Promise<TrainerState> => {
    if (state.best === null || state.best.step === state.step) return state;
    const path = folderOf(state.best.step);
    const best = await verifyCheckpoint(path);
    if (typeof best !== "string") return state;
    warn(path, `the best checkpoint is torn, and another one will be kept: ${best}`);
    return { ...state, best: null };
  };
  return {
    folderOf,
    async newest() {
      await putBackFolders(folder);
      const torn = new Map<number, string>();
      for (const step of await stepsIn(folder)) {
        const path = folderOf(step);
        const state = await verifyCheckpoint(path);
        if (typeof state === "string") {
          torn.set(step, state);
          continue;
        }
        await setTornAside(torn);
        return { path, state: await withBest(state) };
      }
      if (torn.size > 0)
        throw allTorn(
          folder,
          [...torn].map(([step, why]) => `step_${step}: ${why}`),
        );
      return null;
    },
    steps: () => stepsIn(folder),
    async startOfNewest() {
      // A folder that cannot be listed is told of by who goes on from it.
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
        const whole: TrainerState = { ...state, files: await hashFiles(draft) };
        await writeFile(join(draft, stateFile), stateText(whole));
      });
      for (const step of (await stepsIn(folder)).filter((each) => each <= state.step).slice(keep)) {
        if (step !== state.best?.step) await removeWholeFolder(folderOf(step));
      }
      await removeLeftovers(folder);
      return path;
    },
    async setAside() {
      await putBackFolders(folder);
      if ((await stepsIn(folder)).length === 0) return;
      await rename(folder, await asideFolder());
    },
  };
}

function allTorn(folder: string, torn: readonly string[]): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "store",
    where: folder,
    got: `no whole checkpoint (${torn.join("; ")})`,
    expected: "one whose every file is as it was written",
    fix: 'Put back the files, or set these checkpoints aside and start the phase anew with resume: "never".',
  });
}

/** Steps with a folder, newest first. */
async function stepsIn(folder: string): Promise<number[]> {
  const names = await namesIn(folder);
  return names
    .flatMap((name) => /^step_(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => b - a);
}

/** Names in a folder, none where there is no folder. To take one that cannot be listed for empty would train anew over it. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw storeError(folder, cause, "a folder of checkpoints that can be listed");
  }
}
