import * as z from "zod";
import {
  type CallbackContext,
  type TrainerCallback,
  type Guard,
  type GuardContext,
  type Awaitable,
  type Json,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import {
  configError,
  errorMessage,
  copyJson,
  jsonFault,
  parseOptions,
} from "@periodic-eval/contracts/options";
import { inOrder, isPromise } from "../../model/in-order.ts";
import { workingSeconds } from "@periodic-eval/store";
import { seedOf } from "../../random/streams.ts";
import { callbackName } from "../records/reporter.ts";
import type { SnapshotWriter } from "../records/snapshot-writer.ts";
import { runHookGuarded, type GuardedOutcome } from "../window/guarded.ts";
import type { Disturbances } from "../window/disturbances.ts";
import type { Timeouts } from "../window/timeouts.ts";
import type { PhaseProgress } from "./progress.ts";
import type { LoopControl } from "./loop-control.ts";
import type { SessionLog } from "./log-events.ts";
import type { Requests } from "../records/requests.ts";
import type { StopWhen } from "./stop-when.ts";

type Metrics = Readonly<Record<string, number>>;

/** The hooks that take only a context. */
type PlainHook =
  | "onTrainBegin"
  | "onEpochBegin"
  | "onEpochEnd"
  | "onStepBegin"
  | "onStepEnd"
  | "onLog"
  | "onSave"
  | "onTrainEnd";

/** NaN and Infinity are numbers that a loss can have. */
const reportSchema = z.record(
  z.string(),
  z.custom<number>((value) => typeof value === "number", "a number"),
  "numbers by name",
);

const noMetrics: Metrics = Object.freeze({});

export interface HooksOptions {
  readonly callbacks: readonly TrainerCallback[];
  readonly guards: readonly Guard[];
  readonly signal: AbortSignal;
  readonly log: SessionLog;
  readonly control: LoopControl;
  readonly stopWhen: StopWhen;
  readonly progress: PhaseProgress;
  readonly requests: Requests;
  readonly writer: SnapshotWriter;
  readonly disturbances: Disturbances;
  readonly timeouts: Timeouts;
}

/** Calls the hooks of callbacks, inside guards, in the order of the callbacks. An error of a hook never stops training. */
export class Hooks {
  readonly #options: HooksOptions;
  /** The hook that is running; null between hooks. */
  running: string | null = null;
  /** The last state that each callback returned, or that the checkpoint held. */
  readonly #states = new Map<string, Json>();
  readonly #reported: Metrics[] = [];

  constructor(options: HooksOptions) {
    this.#options = options;
  }

  get hasReported(): boolean {
    return this.#reported.length > 0;
  }

  /** Returns and forgets the next numbers that a hook reported. */
  takeReported(): Metrics | undefined {
    return this.#reported.shift();
  }

  /** Calls a hook of all callbacks. Returns a promise only if one of them does. */
  call(hook: PlainHook, metrics: Metrics = noMetrics): Awaitable<void> {
    return inOrder(this.#options.callbacks, (callback) => {
      if (!has(callback, hook)) return undefined;
      const work = (call: HookCall) => callback[hook]!(this.#contextOf(call, metrics));
      return this.#callHook(callback, hook, work);
    });
  }

  /** Sends new snapshots to loggers and `onSnapshot`, and their errors to `onError`. */
  async announceSnapshots(): Promise<void> {
    const { writer, log, callbacks, stopWhen } = this.#options;
    for (let next = writer.takeAnnouncement(); next !== undefined; next = writer.takeAnnouncement()) {
      const { snapshot, failure, isLogged } = next;
      if (!isLogged) await log.snapshot(snapshot);
      await stopWhen.check(snapshot);
      if (failure?.callback) await this.callOnError(failure.callback, failure.error);
      for (const callback of callbacks) {
        if (!has(callback, "onSnapshot")) continue;
        const work = (call: HookCall) => callback.onSnapshot!(this.#contextOf(call, noMetrics), snapshot);
        await this.#callHook(callback, "onSnapshot", work);
      }
    }
  }

  /** Calls a callback's `onError`. An error in it becomes a warning. */
  async callOnError(callback: TrainerCallback, error: unknown): Promise<void> {
    if (!has(callback, "onError") || this.#isUnsettled(callback, "onError")) return;
    const body = (call: HookCall) => callback.onError!(this.#contextOf(call, noMetrics), error);
    const outcome = await this.#insideGuards(callback, "onError", body);
    if ("error" in outcome)
      this.#options.log.warn(callbackName(callback), `onError threw: ${errorMessage(outcome.error)}`);
  }

  async restore(states: Readonly<Record<string, Json>>): Promise<void> {
    for (const callback of this.#options.callbacks) {
      // A callback may be named as a method of every object.
      const state = Object.hasOwn(states, callback.id) ? states[callback.id] : undefined;
      if (state === undefined) continue;
      this.#states.set(callback.id, copyJson(state));
      try {
        await this.#patiently(this.#call(callback, "restore"), () => callback.restore?.(copyJson(state)));
      } catch (cause) {
        throw configError({
          where: "session options",
          path: ["resume", "callbacks", callback.id],
          got: `a state that callback "${callback.id}" refuses`,
          expected: "the state that the callback returned",
          fix: "Resume with the version of the callback that saved it, or remove its entry from the state.",
          cause,
        });
      }
    }
  }

  /**
   * Returns a callback's state for a checkpoint; undefined if it has none. If `state` throws or returns something that JSON
   * cannot hold, the last valid state stands.
   */
  async stateOf(callback: TrainerCallback): Promise<Json | undefined> {
    if (!has(callback, "state") || this.#isUnsettled(callback, "state")) return this.#states.get(callback.id);
    const outcome = await this.#insideGuards(callback, "state", () => readState(callback));
    if ("value" in outcome) {
      if (outcome.value === undefined) this.#states.delete(callback.id);
      else this.#states.set(callback.id, outcome.value);
      return outcome.value;
    }
    const earlier = this.#states.get(callback.id);
    const stored = earlier === undefined ? "no state" : "the previous state";
    const { step } = this.#options.progress.current;
    const message = `state threw, and the checkpoint of step ${step} holds ${stored}: ${errorMessage(outcome.error)}`;
    await this.#reportFailure(callback, message, outcome.error);
    return earlier;
  }

  /** Closes a callback. A call of `session.close` inside it is refused. */
  async closeCallback(callback: TrainerCallback): Promise<void> {
    this.running = "close";
    try {
      await this.#patiently(this.#call(callback, "close"), () => callback.close?.());
    } finally {
      this.running = null;
    }
  }

  #callHook(
    callback: TrainerCallback,
    hook: PlainHook | "onSnapshot",
    work: (call: HookCall) => Awaitable<void>,
  ): Awaitable<void> {
    if (this.#isUnsettled(callback, hook)) return;
    const report = (outcome: GuardedOutcome<void>) => {
      if (!("error" in outcome)) return;
      const { step } = this.#options.progress.current;
      const message = `${hook} threw at step ${step}: ${errorMessage(outcome.error)}`;
      return this.#reportFailure(callback, message, outcome.error);
    };
    const outcome = this.#insideGuards(callback, hook, work);
    return isPromise(outcome) ? outcome.then(report) : report(outcome);
  }

  #reportFailure(callback: TrainerCallback, message: string, error: unknown): Promise<void> {
    this.#options.log.warn(callbackName(callback), message);
    this.#options.control.fail(error);
    return this.callOnError(callback, error);
  }

  #insideGuards<T>(
    callback: TrainerCallback,
    hook: string,
    body: (call: HookCall) => Awaitable<T>,
  ): Awaitable<GuardedOutcome<T>> {
    const { guards, progress, disturbances } = this.#options;
    const call = this.#call(callback, hook);
    this.running = hook;
    const outcome = runHookGuarded(
      guards,
      call,
      () => this.#patiently(call, body),
      (change) => disturbances.add(callbackName(callback), hook, progress.current.step, change),
    );
    if (isPromise(outcome)) return outcome.finally(() => (this.running = null));
    this.running = null;
    return outcome;
  }

  #call(callback: TrainerCallback, hook: string): HookCall {
    const { progress } = this.#options;
    return {
      callback,
      hook,
      at: 0,
      isAbandoned: false,
      // Few guards read the seed, so it is computed on access.
      get seed() {
        return seedOf(progress.seed, progress.phase, callback.id, hook, progress.current.step);
      },
    };
  }

  /** Starts user code of a callback, and gives up on a promise that does not settle. */
  #patiently<T>(call: HookCall, body: (call: HookCall) => Awaitable<T>): Awaitable<T> {
    const { callback, hook: what } = call;
    const answer = body(call);
    if (!isPromise(answer)) return answer;
    call.at = workingSeconds();
    const abandon = () => void (call.isAbandoned = true);
    const where = callbackName(callback);
    return this.#options.timeouts.run({ where, what, heartbeat: call, abandon }, () => answer);
  }

  /** Whether an abandoned call of a hook has not settled yet. */
  #isUnsettled(callback: TrainerCallback, hook: string): boolean {
    const { timeouts } = this.#options;
    return timeouts.hasUnsettled && timeouts.isUnsettled(callbackName(callback), hook);
  }

  #contextOf(call: HookCall, metrics: Metrics): CallbackContext {
    const { progress, requests, control, log, writer, signal } = this.#options;
    const { callback } = call;
    const used =
      <A extends unknown[], R>(work: (...args: A) => R) =>
      (...args: A): R => {
        noteUse(call);
        return work(...args);
      };
    return {
      phase: progress.phase,
      progress: progress.current,
      previous: progress.previous,
      signal,
      metrics,
      rows: async (key) => used(() => writer.rows(key))(),
      measure: used((request) => requests.add(callback, request)),
      requestStop: used((reason) => control.requestStop(errorMessage(reason))),
      requestSave: used((reason) => control.requestSave(errorMessage(reason))),
      report: used((reported) => {
        parseOptions(`callback "${callback.id}" report`, reportSchema, reported);
        this.#reported.push({ ...reported });
      }),
      warn: used((message) => log.warn(callbackName(callback), errorMessage(message))),
    };
  }
}

const has = (callback: TrainerCallback, hook: keyof TrainerCallback): boolean => callback[hook] !== undefined;

function readState(callback: TrainerCallback): Awaitable<Json | undefined> {
  const state: unknown = callback.state!();
  const check = (settled: unknown) => checkedState(callback, settled);
  return isPromise(state) ? state.then(check) : check(state);
}

function checkedState(callback: TrainerCallback, state: unknown): Json | undefined {
  if (state === undefined) return undefined;
  const fault = jsonFault(state);
  // Copied, because the callback may go on changing it.
  if (fault === null) return copyJson(state as Json);
  throw configError({
    where: `callback "${callback.id}" state${fault.path}`,
    got: fault.what,
    expected: "a JSON value",
    fix: "Use finite numbers, strings, booleans, arrays and plain objects in the state, and null for an unknown number.",
  });
}

/** One call of a hook, as its guards and its timeout see it. */
interface HookCall extends GuardContext {
  readonly callback: TrainerCallback;
  readonly hook: string;
  /** When it began to wait or last used its context, on `workingSeconds()`. */
  at: number;
  isAbandoned: boolean;
}

/**
 * Notes that a hook uses its context: it makes progress.
 *
 * @throws PeriodicEvalError `deadline` after it was abandoned.
 */
function noteUse(call: HookCall): void {
  if (call.isAbandoned)
    throw new PeriodicEvalError({
      code: "deadline",
      where: callbackName(call.callback),
      got: `a use of its context by ${call.hook}, which was abandoned`,
      expected: "hooks that settle",
      fix: "Raise the session option patienceSeconds if the hook needs longer.",
    });
  call.at = workingSeconds();
}
