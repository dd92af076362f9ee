import { join, resolve } from "@periodic-eval/store/platform";
import { readdir, readFile, rm } from "@periodic-eval/store/browser";
import type { Progress, SessionState } from "@periodic-eval/core";
import {
  makeFolder,
  readIfPresent,
  removeLeftovers,
  removeWholeFolder,
  writeFileAtomic,
  writeWholeFolder,
} from "@periodic-eval/store";
import type { TrainableLM } from "@periodic-eval/tfjs";

/** An adapter that training has exported. */
export interface Exported extends Pick<Progress, "step" | "maxSteps" | "epoch"> {
  readonly path: string;
  /** Whether it is the end of training. */
  readonly ended: boolean;
}

/**
 * The exported adapters of a phase, in `<runDir>/exports/<phase>/step_<N>`, and in `step_<N>.json` the state of the measuring
 * session after each that was measured. An export is removed only when its state is written: every export without a state is still to
 * be measured.
 */
export class Exports {
  readonly #folder: string;
  readonly #states: string;
  /** Relative to the run's folder, which may be moved. */
  readonly relative: string;

  /** @param isKept Whether exports stay in `<runDir>/saved/<phase>`. */
  constructor(runDir: string, phase: string, isKept: boolean) {
    this.relative = join(isKept ? "saved" : "exports", phase);
    // A server reads the folder, perhaps with another working directory.
    this.#folder = resolve(runDir, this.relative);
    this.#states = resolve(runDir, "exports", phase);
  }

  folderOf(step: number): string {
    return join(this.#folder, `step_${step}`);
  }

  /** Writes the adapter atomically, as a checkpoint that `watchCheckpoints` reads too. */
  async write(
    model: Pick<TrainableLM, "save">,
    { step, maxSteps, epoch, ended }: Progress,
  ): Promise<Exported> {
    const path = this.folderOf(step);
    const state = { global_step: step, max_steps: maxSteps, epoch, finished: ended, log_history: [] };
    await writeWholeFolder(path, async (draft) => {
      await model.save(draft);
      await writeFileAtomic(join(draft, "trainer_state.json"), `${JSON.stringify(state)}\n`);
    });
    return { path, step, maxSteps, epoch, ended };
  }

  /** Returns the exports after a step, in order. */
  async after(step: number): Promise<readonly Exported[]> {
    const steps = (await stepsIn(this.#folder, /^step_(\d+)$/)).filter((one) => one > step);
    return Promise.all(
      steps.map(async (one) => {
        const path = this.folderOf(one);
        const text = await readFile(join(path, "trainer_state.json"), "utf8");
        const state = JSON.parse(text) as { readonly max_steps: number | null; readonly epoch: number };
        // The end is exported again: a phase may have become longer.
        return { path, step: one, maxSteps: state.max_steps, epoch: state.epoch, ended: false };
      }),
    );
  }

  async remove(step: number): Promise<void> {
    if ((await stepsIn(this.#folder, /^step_(\d+)$/)).includes(step))
      await removeWholeFolder(this.folderOf(step));
  }

  /** Returns the newest state up to a step; null if there is none. */
  async stateUpTo(step: number): Promise<SessionState | null> {
    const newest = (await this.#stateSteps()).findLast((one) => one <= step);
    if (newest === undefined) return null;
    const text = await readIfPresent(this.#stateFile(newest));
    return text === null ? null : (JSON.parse(text) as SessionState);
  }

  async writeState(state: SessionState): Promise<void> {
    await makeFolder(this.#states);
    await writeFileAtomic(this.#stateFile(state.progress.step), `${JSON.stringify(state)}\n`);
  }

  /** Removes what an interrupted training has left after a step: those steps are trained again. */
  async cutAfter(step: number): Promise<void> {
    await removeLeftovers(this.#folder);
    for (const { step: later } of await this.after(step)) await removeWholeFolder(this.folderOf(later));
    for (const later of (await this.#stateSteps()).filter((one) => one > step))
      await rm(this.#stateFile(later));
  }

  #stateSteps(): Promise<readonly number[]> {
    return stepsIn(this.#states, /^step_(\d+)\.json$/);
  }

  #stateFile(step: number): string {
    return join(this.#states, `step_${step}.json`);
  }
}

async function stepsIn(folder: string, name: RegExp): Promise<readonly number[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names
    .flatMap((one) => name.exec(one)?.[1] ?? [])
    .map(Number)
    .toSorted((a, b) => a - b);
}
