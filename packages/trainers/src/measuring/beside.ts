import {
  openSession,
  type EvaluableModel,
  type OpenedModel,
  type Progress,
  type Session,
  type SessionOptions,
  type SnapshotStore,
  type TrainerCallback,
} from "@periodic-eval/core";
import { configError } from "@periodic-eval/contracts/options";
import { plainConsoleLogger } from "@periodic-eval/core/console";
import { startTimeout } from "@periodic-eval/store";
import { advance, crossings, isTimed } from "@periodic-eval/core/session";
import type { TrainableLM } from "@periodic-eval/tfjs";
import type { Exported, Exports, MeasureOn } from "./measure-on.ts";
import { joinLoggers, type JoinedLoggers } from "./joined-loggers.ts";

export interface BesideOptions {
  /** The options of the session that would train and measure. */
  readonly session: SessionOptions;
  readonly measureOn: MeasureOn;
  readonly model: Pick<TrainableLM, "save">;
  readonly exports: Exports;
  readonly maxSteps: number;
  /** Whether exports stay after they are measured, and snapshots hold their path. */
  readonly isKept: boolean;
}

/**
 * Trains with a session that measures nothing and exports the adapter at each crossing. A second session, which has the run's store,
 * measures the exports on a server meanwhile. Returns when all are measured.
 *
 * @param train Trains in a session with these options.
 * @throws PeriodicEvalError before training, what the checks of the measuring session throw.
 */
export async function trainBeside<T>(
  options: BesideOptions,
  train: (session: SessionOptions) => Promise<T>,
): Promise<T> {
  const loggers = joinLoggers(options.session.loggers ?? [plainConsoleLogger()]);
  const beside = await Beside.open(options, loggers);
  let result: T;
  try {
    const { runStep, step } = await beside.checked;
    result = await train(trainingOptions(options, loggers, beside, runStep - step));
  } catch (error) {
    await beside.fail(error);
    throw error;
  }
  await beside.finish();
  return result;
}

const exporterId = "export-adapter";

/** Whether a callback measures or reacts to snapshots. Any other belongs to training. */
const isOfMeasuring = ({ triggers, asks, onSnapshot }: TrainerCallback): boolean =>
  triggers !== undefined || (asks?.length ?? 0) > 0 || onSnapshot !== undefined;

function trainingOptions(
  { session }: BesideOptions,
  { ofTraining }: JoinedLoggers,
  beside: Beside,
  runStepOffset: number,
): SessionOptions {
  const { layout: _layout, baseline: _baseline, familywise: _family, saveAtFiring: _save, ...rest } = session;
  const { resume } = session;
  // The store that has the snapshots belongs to the other session.
  const { snapshots: _snapshots, interrupted: _interrupted, ...state } = resume ?? {};
  return {
    ...rest,
    run: nowhere,
    runStepOffset,
    callbacks: [beside.exporter(), ...session.callbacks.filter((one) => !isOfMeasuring(one))],
    loggers: ofTraining,
    ...(resume && { resume: state as typeof resume }),
  };
}

const nowhere: SnapshotStore = {
  put: () => {
    throw configError({
      where: "measureOn",
      got: "a measurement by a callback without triggers, asks or onSnapshot",
      expected: "callbacks whose measurements are known, so that the adapter is exported for them",
      fix: "Give the callback triggers or asks, or set beside: false.",
    });
  },
  get: async () => null,
  rows: async () => [],
  list: async () => [],
  supersede: async () => undefined,
};

const defaultWaitSeconds = 3600;

/** The session that measures exported adapters, one after the other. */
class Beside {
  readonly #options: BesideOptions;
  readonly #session: Session;
  readonly #loggers: JoinedLoggers;
  readonly #callbacks: readonly TrainerCallback[];
  readonly #stopped = new AbortController();
  readonly #signal: AbortSignal;
  readonly #queue: Exported[] = [];
  #wake: () => void = () => undefined;
  #isClosed = false;
  /** The adapter to measure; null for the base model. */
  #place: Exported | null = null;
  #opened: { readonly place: Exported | null; readonly opened: OpenedModel } | null = null;
  /** Steps whose exports stay, because a callback asked to save, or because a measurement failed. */
  readonly #keep = new Set<number>();
  #stop: string | null = null;
  #done: Promise<void> = Promise.resolve();

  private constructor(options: BesideOptions, loggers: JoinedLoggers, resume: SessionOptions["resume"]) {
    const { session, maxSteps, exports, isKept } = options;
    const { guards: _guards, signal, saveAtFiring: _save, resume: _resume, ...rest } = session;
    this.#options = options;
    this.#loggers = loggers;
    this.#callbacks = session.callbacks.filter(isOfMeasuring);
    refuseSeconds(this.#callbacks);
    this.#signal = AbortSignal.any([this.#stopped.signal, ...(signal ? [signal] : [])]);
    this.#session = openSession({
      ...rest,
      maxSteps,
      model: () => this.#model(),
      callbacks: this.#callbacks,
      loggers: [{ name: exporterId, snapshot: (one) => this.#keepFailed(one) }, ...loggers.ofMeasuring],
      // Training does not wait.
      budget: { ...session.budget, overheadPercent: null },
      signal: this.#signal,
      ...(isKept && { saveAtFiring: async ({ progress }) => `${exports.relative}/step_${progress.step}` }),
      ...(resume && { resume }),
    });
  }

  /** Begins the measuring session with the exports that an interrupted run has left. */
  static async open(options: BesideOptions, loggers: JoinedLoggers): Promise<Beside> {
    const { session, exports, model, maxSteps } = options;
    const { resume: trained } = session;
    const from = trained?.progress.step ?? 0;
    await exports.cutAfter(from);
    const stored = await exports.stateUpTo(from);
    // A run whose earlier steps were measured in line goes on from there.
    const wasBeside = trained === undefined || exporterId in trained.callbacks;
    const resume = stored ?? (wasBeside ? null : trained);
    const beside = new Beside(options, loggers, resume ?? undefined);
    const measured = resume?.progress.step ?? -1;
    if (from === 0) beside.#place = await exports.write(model, { ...atStart, maxSteps });
    beside.#queue.push(...(await exports.after(Math.max(0, measured))));
    if (measured < 0 && from > 0)
      beside.#place = (await exports.after(-1)).find(({ step }) => step === 0) ?? null;
    beside.#done = beside.#run();
    // It is thrown by `checked`, or at the end.
    beside.#done.catch(() => undefined);
    return beside;
  }

  /** Settles when the session has passed its checks. */
  get checked(): JoinedLoggers["isChecked"] {
    // If the loop ends first, it has failed.
    return Promise.race([this.#loggers.isChecked, this.#done.then(() => this.#loggers.isChecked)]);
  }

  /** Returns the callback that exports the adapter in the training's session. */
  exporter(): TrainerCallback {
    const { exports, model } = this.#options;
    const triggers = this.#callbacks.flatMap((one) => one.triggers ?? []);
    const add = async (progress: Progress) => this.#add(await exports.write(model, progress));
    return {
      id: exporterId,
      asks: [],
      onStepEnd: async ({ previous, progress, requestStop }) => {
        if (this.#stop !== null) requestStop(this.#stop);
        const before = previous ?? { ...atStart, maxSteps: progress.maxSteps };
        if (crossings(triggers, before, advance(before, progress)).length > 0) await add(progress);
      },
      onTrainEnd: async ({ progress, signal }) => {
        if (!signal.aborted) await add(progress);
      },
      // A checkpoint shows by it that exports belong to it.
      state: () => ({}),
    };
  }

  #add(exported: Exported): void {
    const same = this.#queue.findIndex(({ step }) => step === exported.step);
    if (same === -1) this.#queue.push(exported);
    else this.#queue[same] = exported;
    this.#wake();
  }

  async #run(): Promise<void> {
    const session = this.#session;
    this.#stop = (await session.begin()).stop;
    for (;;) {
      const next = this.#queue.shift();
      if (this.#signal.aborted) return;
      if (next !== undefined) await this.#measure(next);
      else if (this.#isClosed) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async #measure(exported: Exported): Promise<void> {
    const { exports, isKept } = this.#options;
    const { step, path, maxSteps, epoch, ended } = exported;
    const session = this.#session;
    const before = this.#place;
    this.#place = exported;
    if (step > session.progress.step) {
      const reached = Math.max(epoch, session.progress.epoch);
      const { stop, save } = await session.stepEnd({ step, path, maxSteps, epoch: reached });
      this.#stop ??= stop;
      if (save !== null) this.#keep.add(step);
    }
    if (this.#signal.aborted) return;
    const state = await session.save();
    if (ended) await session.end();
    if (this.#signal.aborted) return;
    await this.#close();
    await exports.writeState(state);
    for (const one of [before?.step, step])
      if (one !== undefined && !isKept && !this.#keep.has(one)) await exports.remove(one);
  }

  /** Waits until all exports are measured, and closes the session. */
  async finish(): Promise<void> {
    const { waitSeconds = defaultWaitSeconds } = this.#options.measureOn;
    const left = this.#queue.length;
    if (left > 0 && !this.#signal.aborted)
      this.#report(`training has ended; ${left} ${left === 1 ? "measurement is" : "measurements are"} left`);
    this.#isClosed = true;
    this.#wake();
    const stopTimeout = startTimeout(waitSeconds, () => {
      this.#warn(
        `stopped waiting after ${waitSeconds} seconds; train again to take the measurements that are left`,
      );
      this.#stopped.abort(new Error("waited too long"));
    });
    try {
      await this.#done;
    } finally {
      stopTimeout();
      await this.#close();
      await this.#session.close();
    }
  }

  async fail(error: unknown): Promise<void> {
    this.#stopped.abort(error);
    this.#loggers.release();
    this.#isClosed = true;
    this.#wake();
    await this.#session.close().catch(() => undefined);
    await this.#done.catch(() => undefined);
    await this.#close();
  }

  async #model(): Promise<EvaluableModel> {
    const { server } = this.#options.measureOn;
    const place = this.#place;
    if (this.#opened?.place !== place || this.#opened === null) {
      await this.#close();
      const { name } = server.identity;
      const opened = await server.openCheckpoint(name, place?.path ?? null, { signal: this.#signal });
      this.#opened = { place, opened };
    }
    const { model } = this.#opened.opened;
    return place === null ? { ...model, base: model } : model;
  }

  async #close(): Promise<void> {
    const last = this.#opened;
    this.#opened = null;
    await last?.opened.dispose?.();
  }

  #keepFailed({ status, step }: { readonly status: string; readonly step: number }): void {
    if (status !== "failed") return;
    this.#keep.add(step);
  }

  #report(message: string): void {
    for (const logger of this.#loggers.ofTraining) logger.event?.({ kind: "plan", message });
  }

  #warn(message: string): void {
    for (const logger of this.#loggers.ofTraining)
      logger.event?.({ kind: "warning", where: "measureOn", message });
  }
}

const atStart = { step: 0, epoch: 0, elapsedSeconds: 0, ended: false, maxSteps: null } as const;

/** The seconds of training pass in another session than those of measuring. */
function refuseSeconds(callbacks: readonly TrainerCallback[]): void {
  const timed = callbacks.find(({ triggers = [] }) => isTimed(triggers));
  if (timed === undefined) return;
  throw configError({
    where: `callback "${timed.id}"`,
    path: ["measureOn", "beside"],
    got: "a schedule in seconds",
    expected: "percent, steps or epochs, which do not depend on the speed of measuring",
    fix: "Change the schedule, or set beside: false.",
  });
}
