import { mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { storeError } from "@periodic-eval/core/snapshots";
import { stateFile, hashFiles, verifyCheckpoint, type TrainerState } from "./trainer-state.ts";
import { removeLeftovers, removeWholeFolder, writeWholeFolder } from "./whole-folder.ts";

export interface Checkpoint {
  readonly path: string;
  readonly state: TrainerState;
}

/** The checkpoints of one phase: `<run>/checkpoints/<phase>/step_<N>/`, N completed optimizer steps. */
export interface Checkpoints {
  /**
   * The newest whole one, null where there is none. Torn ones are passed over, and told of. Throws a `store` error where
   * the folder cannot be listed.
   */
  newest(): Promise<Checkpoint | null>;
  /** Writes one whole, `fill` giving all files but the state; then removes all but the newest `keep`. Returns its folder. */
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
  return {
    async newest() {
      for (const step of await stepsIn(folder)) {
        const path = join(folder, nameOf(step));
        const state = await verifyCheckpoint(path);
        if (typeof state !== "string") return { path, state };
        warn(path, `torn and passed over: ${state}`);
      }
      return null;
    },
    async save(state, fill) {
      const path = join(folder, nameOf(state.step));
      await writeWholeFolder(path, async (draft) => {
        await fill(draft);
        const whole: TrainerState = { ...state, files: await hashFiles(draft) };
        await writeFile(join(draft, stateFile), `${JSON.stringify(whole, null, 2)}\n`);
      });
      for (const step of (await stepsIn(folder)).filter((each) => each <= state.step).slice(keep)) {
        await removeWholeFolder(join(folder, nameOf(step)));
      }
      await removeLeftovers(folder);
      return path;
    },
    async setAside() {
      if ((await stepsIn(folder)).length === 0) return;
      const aside = join(runDir, "checkpoints", ".superseded");
      await mkdir(aside, { recursive: true });
      const count = (await readdir(aside)).filter((name) => name.startsWith(`${phase}.`)).length;
      await rename(folder, join(aside, `${phase}.${count + 1}`));
    },
  };
}

const nameOf = (step: number): string => `step_${step}`;

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
