import * as z from "zod";
import { configError } from "@periodic-eval/contracts/options";
import type {
  EvaluableModel,
  OpenCheckpoint,
  OpenedModel,
  Progress,
  SessionState,
} from "@periodic-eval/core";
import {
  makeFolder,
  readIfPresent,
  removeLeftovers,
  removeWholeFolder,
  writeFileAtomic,
  writeWholeFolder,
} from "@periodic-eval/store";
import { readdir, readFile, rm } from "@periodic-eval/store/browser";
import { join, resolve } from "@periodic-eval/store/platform";
import type { TrainableLM } from "@periodic-eval/tfjs";

/** A server on which a training's adapter is measured. */
export interface MeasureOn {
  /** The base model on the server: the result of `vllm` of @periodic-eval/remote. Whoever opened it disposes it. */
  readonly server: Pick<EvaluableModel, "identity"> & { readonly openCheckpoint: OpenCheckpoint };
  /**
   * True (default): training exports its adapter at each crossing of a schedule and continues; the server measures the exports.
   * Reactions to snapshots, such as early stopping, act when the snapshot is there, which is later than the measured step. False:
   * training pauses while the server measures.
   */
  readonly beside?: boolean;
  /** How long the end of training waits for the measurements that are left, in seconds; default 3600. A resumed run takes them. */
  readonly waitSeconds?: number;
}

const isFunction = (value: unknown) => typeof value === "function";
const serverText = "a served model, the awaited result of vllm()";
const secondsText = "a number of seconds above 0";

export const measureOnSchema = z.strictObject({
  server: z.custom<MeasureOn["server"]>(
    (value) => isFunction((value as MeasureOn["server"] | null)?.openCheckpoint),
    serverText,
  ),
  beside: z.boolean("true or false").optional(),
  waitSeconds: z.number(secondsText).positive(secondsText).optional(),
} satisfies Record<keyof MeasureOn, z.ZodType>);

/** @throws PeriodicEvalError `config` for a model without an adapter: a running server cannot load other weights. */
export function checkMeasureOn(
  where: string,
  { model, measureOn }: { readonly model: { readonly base?: unknown }; readonly measureOn?: MeasureOn },
): void {
  if (measureOn === undefined || model.base !== undefined) return;
  throw configError({
    where,
    path: ["measureOn"],
    got: "a model without an adapter",
    expected: "a LoRA adapter: a running server cannot load other weights",
    fix: "Train withLora(model) of @periodic-eval/models, or measure in this process.",
  });
}

/** A model whose exported adapter a server measures while training pauses. */
interface InLineModel {
  /** Exports the weights of this step, once, and opens them on the server. */
  at(progress: Progress): Promise<EvaluableModel>;
  dispose(): Promise<void>;
}

export function inLineModel(
  { server }: MeasureOn,
  exports: Exports,
  model: Pick<TrainableLM, "save">,
): InLineModel {
  let current: { readonly step: number; readonly opened: OpenedModel } | null = null;
  const dispose = async () => {
    const last = current;
    current = null;
    if (last === null) return;
    await last.opened.dispose?.();
    await exports.remove(last.step);
  };
  return {
    dispose,
    async at(progress) {
      if (current?.step === progress.step) return current.opened.model;
      await dispose();
      const { path, step } = await exports.write(model, progress);
      try {
        current = { step, opened: await server.openCheckpoint(server.identity.name, path) };
      } catch (error) {
        await exports.remove(step);
        throw error;
      }
      return current.opened.model;
    },
  };
}

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
