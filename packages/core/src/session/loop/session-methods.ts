import type { Awaitable, Json, Control, SessionState, StepEnd } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { inOrder, isPromise } from "../../model/in-order.ts";
import { abortReason } from "../records/interrupted.ts";
import { knownSteps, supersedeUnsettled } from "../records/resume.ts";
import { runWindow, type RequestSource } from "../window/window.ts";
import { beginSession, type SessionParts } from "./begin.ts";
import { misuse } from "./progress.ts";
import { waitForGrading } from "./wait-for-grading.ts";
import { checkMaxSteps } from "./options.ts";

type Metrics = Readonly<Record<string, number>>;

/** The bodies of a session's methods, in the order of training. Those that run hooks end in `#settle`, which opens the window. */
export class SessionMethods {
  readonly #parts: SessionParts;
  readonly #requests: RequestSource;
  #stage: "new" | "begun" | "training" | "ended" = "new";
  /** Whether `begin` accepted the run: a run that it refused stays as it was. */
  hasBegun = false;
  /** Whether training ended, and not by an abort. */
  isFinished = false;
  #isInEpoch = false;
  /** Whether the phase was finished before this session, which has nothing to plan. */
  #isOver = false;
  /** Whether the loop has called `stepBegin` for the step that ends next. */
  #isInStep = false;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#requests = {
      take: () => parts.requests.take(),
      announce: () => parts.hooks.announceSnapshots(),
    };
  }

  async begin(maxSteps: number | null | undefined): Promise<Control> {
    await this.#begin(maxSteps, null);
    return this.#parts.control.take();
  }

  async stepBegin(): Promise<void> {
    await this.#begin(undefined, null);
    await this.#beginEpoch();
    this.#isInStep = true;
    await this.#parts.hooks.call("onStepBegin");
    await this.#settle();
  }

  stepEnd(at: StepEnd): Awaitable<Control> {
    const begun = this.#begin(at.maxSteps, at.step ?? 1);
    const done = begun === undefined ? this.#endStep(at) : begun.then(() => this.#endStep(at));
    const { control } = this.#parts;
    return isPromise(done) ? done.then(() => control.take()) : control.take();
  }

  /** Returns a promise only if something of this step has to wait: a hook, a logger, a measurement. */
  #endStep(at: StepEnd): Awaitable<void> {
    const { hooks, progress, records, governor, stopWhen } = this.#parts;
    if (this.#stage === "ended")
      throw misuse(
        "stepEnd",
        "a step after the end",
        "steps between begin and end",
        "Open another session for another training.",
      );
    const { step: before, epoch } = progress.current;
    // A loop may use one object for the metrics of all steps.
    const metrics = at.metrics && { ...at.metrics };
    let next = progress.current;
    const parts = [
      () => this.#beginEpoch(),
      () => {
        next = progress.after(at);
        return this.#isInStep || next.step === before ? undefined : this.#beginStepLate(next.step);
      },
      () => {
        this.#isInStep = false;
        return records.interrupted.isEmpty || next.step === before ? undefined : this.#skipInterrupted();
      },
      () => {
        progress.moveTo(next, at.path);
        governor.learnStep(progress.previous, progress.current);
        stopWhen.atStep();
        return records.writer.hasAnnouncements ? hooks.announceSnapshots() : undefined;
      },
      () => hooks.call("onStepEnd", metrics),
      () => metrics && this.#logMetrics(metrics, at.logged?.at(-1)?.step ?? next.step),
      () => {
        this.#keepLogged(at.logged ?? (metrics && [{ step: next.step, metrics }]));
        if (Math.floor(progress.current.epoch) === Math.floor(epoch)) return undefined;
        this.#isInEpoch = false;
        return hooks.call("onEpochEnd");
      },
      () => this.#settle(),
    ];
    return inOrder(parts, (part) => part());
  }

  log(metrics: Metrics, step = this.#parts.progress.current.step): Awaitable<void> {
    if (this.#stage === "new")
      throw misuse(
        "log",
        "a call before begin",
        "metrics between begin and close",
        "Log them during training.",
      );
    const logged = { ...metrics };
    const keep = () => this.#keepLogged([{ step, metrics: logged }]);
    return inOrder([() => this.#logMetrics(logged, step), keep, () => this.#settle()], (part) => part());
  }

  async save(): Promise<SessionState> {
    if (this.#stage === "new")
      throw misuse("save", "a call before begin", "a session that has begun", "Await session.begin() first.");
    const { hooks, records, callbacks: all, progress, clock } = this.#parts;
    await hooks.call("onSave");
    await this.#settle();
    await records.writer.writeBeforeSave(progress.current.step);
    await records.training.write();
    const callbacks: Record<string, Json> = {};
    for (const callback of all) {
      const state = await hooks.stateOf(callback);
      if (state !== undefined) callbacks[callback.id] = state;
    }
    const unreported = records.writer.unreported();
    return {
      phase: progress.phase,
      progress: { ...progress.current, ended: false },
      runStepOffset: progress.runStepOffset,
      callbacks,
      windowSeconds: clock.windowSeconds,
      ...(!records.interrupted.isEmpty && { interrupted: records.interrupted.toState() }),
      snapshots: knownSteps(records.writer.written()),
      ...(unreported.length > 0 && { unreported: knownSteps(unreported) }),
    };
  }

  async testConditions(): Promise<void> {
    if (this.#stage === "new")
      throw misuse(
        "testConditions",
        "a call before begin",
        "a session that has begun",
        "Await session.begin() first.",
      );
    const { records, stopWhen } = this.#parts;
    for (const snapshot of records.writer.unannounced()) await stopWhen.check(snapshot);
  }

  async end(): Promise<Control> {
    await this.#end();
    return this.#parts.control.take();
  }

  async #end(): Promise<void> {
    if (this.#stage === "ended") return;
    const { hooks, progress, requests, records, signal, stopWhen } = this.#parts;
    if (this.#stage === "new") {
      this.#warn("ended before it began: nothing was measured");
      this.#stage = "ended";
      return;
    }
    // An aborted phase is not over: its end is measured when it is resumed and reaches it.
    const elapsedSeconds = progress.trainingSeconds();
    progress.moveTo({ ...progress.current, elapsedSeconds, ended: !signal.aborted });
    await hooks.announceSnapshots();
    await hooks.call("onTrainEnd");
    await this.#settle();
    // A verdict that is still to come may meet a condition, and decides which weights are clean.
    if (stopWhen.hasRules && !signal.aborted) {
      await waitForGrading(this.#parts);
      await hooks.announceSnapshots();
    }
    this.#stage = "ended";
    requests.close();
    // A resumed phase may reach those steps again.
    if (signal.aborted) return;
    this.isFinished = true;
    if (records.lost() !== null) return;
    await this.#skipInterrupted();
    await supersedeUnsettled(records, progress.current.step);
  }

  async fail(error: unknown): Promise<void> {
    if (this.#stage === "ended") return;
    const stage = this.#stage;
    this.#stage = "ended";
    const { requests, callbacks, hooks, progress, records } = this.#parts;
    requests.close();
    requests.take();
    if (stage === "new") return;
    // `begin` has thrown an error of the start, and the loss of the run was a warning.
    if (stage === "training" && error !== records.lost())
      this.#warn(`training failed at step ${progress.current.step}: ${errorMessage(error)}`);
    for (const callback of callbacks) await hooks.callOnError(callback, error);
  }

  /**
   * Begins the session, unless it has begun.
   *
   * @param lateStep The step whose end began the session; null if `begin` or `stepBegin` did.
   */
  #begin(maxSteps: number | null | undefined, lateStep: number | null): Promise<void> | undefined {
    return this.#stage === "new" ? this.#beginNow(maxSteps, lateStep) : undefined;
  }

  async #beginNow(maxSteps: number | null | undefined, lateStep: number | null): Promise<void> {
    const { hooks, progress, requests, records, callbacks } = this.#parts;
    if (maxSteps !== undefined) checkMaxSteps("session.begin", maxSteps);
    this.#isOver = await beginSession(this.#parts, maxSteps ?? null);
    this.#stage = "begun";
    this.hasBegun = true;
    this.#isInEpoch = progress.current.epoch % 1 !== 0;
    // A phase whose session begins in its middle has no start to measure.
    if (lateStep !== null && lateStep > 1 && progress.current.step === 0)
      progress.current = { ...progress.current, step: lateStep };
    this.#parts.stopWhen.atStep();
    await hooks.call("onTrainBegin");
    requests.requeue(records.interrupted.requests(callbacks));
    if (lateStep === null) {
      await this.#settle();
      if (this.#parts.stopWhen.needsStart && progress.current.step === 0) {
        await waitForGrading(this.#parts);
        await hooks.announceSnapshots();
      }
    } else if (lateStep > progress.current.step) {
      this.#warnLate(0, lateStep, "Call session.begin() before training.");
    }
    this.#stage = "training";
  }

  #beginEpoch(): Awaitable<void> {
    if (this.#isInEpoch) return;
    this.#isInEpoch = true;
    return this.#parts.hooks.call("onEpochBegin");
  }

  /** Runs `onStepBegin` at the end of the step, for loops that call only `stepEnd`. */
  #beginStepLate(step: number): Awaitable<void> {
    const { hooks, requests } = this.#parts;
    const before = requests.count;
    const warn = () => this.#warnLate(before, step, "Call session.stepBegin() before the step.");
    const called = hooks.call("onStepBegin");
    return isPromise(called) ? called.then(warn) : warn();
  }

  /** Warns of requests, all but the first ones, that are measured after a step though their hook ran for the weights before. */
  #warnLate(first: number, step: number, fix: string): void {
    for (const id of this.#parts.requests.idsAfter(first))
      this.#warn(`"${id}" was requested before step ${step} and is measured after it. ${fix}`);
  }

  #logMetrics(metrics: Metrics, step: number): Awaitable<void> {
    const { log, progress, hooks } = this.#parts;
    const at = progress.inRun();
    const logged = log.train(metrics, step === at.step ? at : { ...at, loggedAt: step });
    const call = () => hooks.call("onLog", metrics);
    return isPromise(logged) ? logged.then(call) : call();
  }

  /** Keeps what training logged for its curves, and starts to write them if this is due. */
  #keepLogged(logged: StepEnd["logged"]): void {
    const { records, progress } = this.#parts;
    for (const { step, metrics } of logged ?? [])
      records.training.add(step, progress.runStepOffset + step, metrics);
    records.training.writeIfDue(progress.current.elapsedSeconds);
  }

  /** Measures what hooks requested and logs what they reported. Waits only if there is something to measure or to log. */
  #settle(): Awaitable<void> {
    const { requests, hooks, records, reportPauses } = this.#parts;
    reportPauses();
    // Nothing measured could be written any more.
    if (records.lost() !== null) requests.take();
    // The plan is about what follows the start.
    if (!requests.areOfStart) this.#announcePlan();
    if (requests.count > 0 || hooks.hasReported)
      return this.#measureRequests().then(() => this.#stopIfAborted());
    this.#stopIfAborted();
  }

  async #measureRequests(): Promise<void> {
    const { requests, window, progress, hooks, log, records } = this.#parts;
    if (requests.count > 0) {
      void records.training.write();
      await runWindow(window, progress.position(), this.#requests);
      this.#announcePlan();
    }
    for (let metrics = hooks.takeReported(); metrics !== undefined; metrics = hooks.takeReported())
      await log.train(metrics, progress.inRun());
  }

  #stopIfAborted(): void {
    const aborted = abortReason(this.#parts.signal);
    if (aborted !== null) this.#parts.control.requestStop(aborted);
  }

  #announcePlan(): void {
    const { governor, progress, requests, log } = this.#parts;
    if (this.#isOver || !governor.mayAnnouncePlan) return;
    const message = governor.announcePlan(progress.current, requests.idsAfter(0));
    if (message !== null) log.event({ kind: "plan", message });
  }

  #skipInterrupted(): Promise<void> {
    const { records, progress, requests } = this.#parts;
    // Requested again by a late begin: measured with the step that follows.
    return records.interrupted.skip(progress.position(), (id) => requests.has(id));
  }

  #warn(message: string): void {
    const { log, progress } = this.#parts;
    log.warn(`session of phase "${progress.phase}"`, message);
  }
}
