import {
  openSession,
  type Control,
  type Progress,
  type Session,
  type SessionOptions,
  type TrainerCallback,
} from "@periodic-eval/core";
import { PeriodicEvalError, type Logger, type SessionState, type StepEnd } from "@periodic-eval/contracts";
import { errorMessage, isRecord } from "@periodic-eval/contracts/options";
import { snapshotScalars } from "@periodic-eval/loggers";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { type Details, liveGuards } from "./live-guards.ts";
import { liveModel } from "./live-model.ts";
import { nextStep } from "./next-step.ts";
import { SavedAdapters, type MeasureOn } from "./served-adapter.ts";
import {
  protocolVersion,
  type Done,
  type Hello,
  type TrainerMethod,
  type TrainerParams,
} from "./protocol.ts";

/** The parts of a trainer's session besides the model. */
export type LiveSession = Pick<SessionOptions, "callbacks"> & {
  readonly savesAtFiring?: boolean;
  readonly measureOn?: MeasureOn | null;
  /** Returns an error about options as one about the file that holds them. */
  place?(error: unknown): unknown;
} & Partial<
    Omit<
      SessionOptions,
      "callbacks" | "model" | "guards" | "run" | "phase" | "maxSteps" | "resume" | "signal"
    >
  >;

export interface LiveHostOptions extends Omit<ConnectionOptions, "where"> {
  /** Builds what a trainer's `hello` asks for. What it throws is the trainer's error, before its first step. */
  open(hello: Hello): Promise<LiveSession>;
  /** Receives what the trainer wants people to read. */
  warn(message: string): void;
}

/**
 * Measures the model of a trainer that speaks the live protocol, until it closes the connection. A connection that ends without `end`
 * is a training that failed: what is graded stays, and the next run resumes.
 *
 * @throws PeriodicEvalError `model` if the connection ends before a session has begun. A session that has begun reports why it ends.
 */
export async function serveTrainer({ open, warn, ...ends }: LiveHostOptions): Promise<void> {
  const connection = new Connection({ ...ends, where: "the trainer" });
  const host = new LiveHost(connection, open);
  const call = <M extends TrainerMethod>(method: M, params: TrainerParams[M]) => host.call(method, params);
  await connection.serve({ call, warn }).catch(() => undefined);
  await host.abandon();
}

class LiveHost {
  readonly #connection: Connection;
  readonly #open: LiveHostOptions["open"];
  #session: Session | null = null;
  #adapters: SavedAdapters | null = null;
  #isGreeted = false;
  /** Whether the trainer knows that nothing more is measured: it closed the session, or its `hello` was refused. */
  #isOver = false;
  #callbacks: readonly TrainerCallback[] = [];
  /** Whether a verdict arrived since the trainer's last step. An answer to another call must not put off its wake. */
  #hasVerdict = false;
  #metrics: { step: number; values: Readonly<Record<string, number>> }[] = [];

  constructor(connection: Connection, open: LiveHostOptions["open"]) {
    this.#connection = connection;
    this.#open = open;
  }

  async call<M extends TrainerMethod>(method: M, params: TrainerParams[M]): Promise<Done> {
    this.#isGreeted ||= method === "hello";
    if (method === "hello")
      return this.#hello(params as Hello).catch((error: unknown) => {
        this.#isOver = this.#session === null && !this.#connection.ended.aborted;
        throw error;
      });
    const session = this.#session;
    if (session === null)
      throw new PeriodicEvalError({
        code: "config",
        where: `live ${method}`,
        got: "a call before hello",
        expected: "hello first",
        fix: "Send hello, and wait for its answer.",
      });
    if (method === "step") {
      const { step, epoch, max_steps: maxSteps, logged } = params as TrainerParams["step"];
      this.#hasVerdict = false;
      const control = await session.stepEnd({
        step,
        ...(epoch !== undefined && { epoch }),
        ...(maxSteps !== undefined && { maxSteps }),
        ...loggedOf(logged),
      });
      return this.#done(control);
    }
    if (method === "save") return this.#done(noControl, { state: (await session.save()) as never });
    const { logged = [] } = params as Partial<TrainerParams["end"]>;
    for (const { step, metrics } of loggedOf(logged).logged ?? []) await session.log(metrics, step);
    if (method === "end") return this.#done({ ...(await session.end()), stop: null });
    if (method === "fail") await session.fail(new Error((params as TrainerParams["fail"]).message));
    else {
      this.#isOver = true;
      this.#session = null;
      await this.#close(session);
    }
    return this.#done(noControl);
  }

  /**
   * Closes a session whose trainer is gone. It warns why it ends.
   *
   * @throws PeriodicEvalError `model` if no session has begun.
   */
  async abandon(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    if (this.#isOver) return;
    if (!this.#isGreeted)
      throw new PeriodicEvalError({
        code: "config",
        where: "live",
        got: `no hello: ${errorMessage(this.#connection.ended.reason)}`,
        expected: "a trainer that starts this command and speaks the live protocol",
        fix: "Run `pip install periodic-eval` for the callback, or see docs/reference/live-protocol.md to write a client.",
      });
    if (session === null) throw this.#connection.lost();
    const reason = `${errorMessage(this.#connection.ended.reason)}; training that resumes from a checkpoint continues the run, and training without one starts again from step 1`;
    await session.fail(new Error(reason)).catch(() => undefined);
    await this.#close(session);
  }

  async #close(session: Session): Promise<void> {
    await session.close().finally(() => this.#adapters?.dispose());
  }

  async #hello(hello: Hello): Promise<Done> {
    if (this.#session !== null)
      throw new PeriodicEvalError({
        code: "config",
        where: "live hello",
        got: "a second hello",
        expected: "one for each connection",
        fix: "Start another host for another training.",
      });
    if (hello.protocol > protocolVersion)
      throw new PeriodicEvalError({
        code: "config",
        where: "live hello.protocol",
        got: String(hello.protocol),
        expected: `at most ${protocolVersion}, the version of this host`,
        fix: "Update the host: pip install --upgrade periodic-eval.",
      });
    const { run_dir: run, phase, max_steps: maxSteps, guards, can_save } = hello;
    const resume = resumptionOf(hello);
    const {
      callbacks,
      loggers = [],
      savesAtFiring = false,
      measureOn = null,
      place,
      ...options
    } = await this.#open(hello);
    const connection = this.#connection;
    const adapters = new SavedAdapters(connection, measureOn);
    this.#adapters = adapters;
    let model = liveModel(connection, hello);
    const changeDetails = (details: Details) => {
      const all = isRecord(hello.model.details) ? { ...hello.model.details, ...details } : details;
      model = liveModel(connection, { ...hello, model: { ...hello.model, details: all } });
    };
    const session = openSession({
      run,
      phase,
      maxSteps,
      model: () => model,
      guards: liveGuards(connection, guards, changeDetails),
      callbacks,
      signal: connection.ended,
      loggers: [...loggers, this.#toTrainer()],
      ...(savesAtFiring &&
        can_save && {
          saveAtFiring: ({ progress }) => adapters.save(progress),
        }),
      ...(measureOn !== null && {
        modelOf: (callback: TrainerCallback, at: Progress) => adapters.modelOf(callback, at),
      }),
      ...options,
      // A phase of 0 steps measures weights that are there: its own start would be its only measurement.
      ...(maxSteps === 0 && options.baseline === "phase_start" && { baseline: "run_start" }),
      ...(resume !== null && { resume }),
    });
    this.#session = session;
    this.#callbacks = callbacks;
    try {
      return { ...this.#done(await session.begin()), protocol: protocolVersion };
    } catch (error) {
      this.#session = null;
      await this.#close(session).catch(() => undefined);
      throw place?.(error) ?? error;
    }
  }

  /** Sends the numbers of snapshots back, for the trainer's own loggers. */
  #toTrainer(): Logger {
    return {
      name: "trainer",
      event: ({ kind }) => {
        if (kind !== "graded") return;
        this.#hasVerdict = true;
        this.#connection.notify("wake");
      },
      snapshot: (snapshot) => {
        const values = snapshotScalars(snapshot);
        if (Object.keys(values).length > 0) this.#metrics.push({ step: snapshot.step, values });
      },
    };
  }

  /** Returns the next step of a callback, or of a stop that an earlier host wrote. */
  #nextStep(at: Progress): number | null {
    const { step = 0 } = this.#session!.conditionStop ?? {};
    const due = nextStep(this.#callbacks, at);
    return step > at.step && (due === null || step < due) ? step : due;
  }

  #done({ stop, save }: Control, more: Partial<Done> = {}): Done {
    const { progress = null, cleanStep = null } = this.#session ?? {};
    const metrics = this.#metrics;
    this.#metrics = [];
    const next = (at: Progress) =>
      this.#hasVerdict && at.step < (at.maxSteps ?? Infinity) ? at.step + 1 : this.#nextStep(at);
    return {
      next_step: progress === null ? null : next(progress),
      stop,
      save,
      metrics,
      ...(cleanStep !== null && { clean_step: cleanStep }),
      ...more,
    };
  }
}

/**
 * Returns where the session resumes; null at the start of the phase. The state is that of the last step that the host heard of: of a
 * checkpoint that is newer, or has no state, the snapshots up to its step say what is measured.
 */
function resumptionOf({ phase, max_steps: maxSteps, step, epoch, state }: Hello): SessionState | null {
  if (step === 0) return null;
  const { progress, ...known } = (state ?? {}) as Partial<SessionState>;
  const at = { maxSteps, elapsedSeconds: 0, ...progress, step, epoch, ended: false };
  return { phase, callbacks: {}, windowSeconds: 0, ...known, progress: at };
}

const noControl: Control = { stop: null, save: null };

/** Returns the trainer's logged numbers as a step's metrics: the last step's, and all of them for the training curves. */
function loggedOf(logged: TrainerParams["step"]["logged"]): Pick<StepEnd, "metrics" | "logged"> {
  const steps = logged.map(({ step, metrics }) => ({
    step,
    metrics: Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name, value ?? Number.NaN])),
  }));
  const last = steps.at(-1);
  return last === undefined ? {} : { metrics: last.metrics, logged: steps };
}
