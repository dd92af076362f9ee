import type { CallbackContext, MeasureRequest, TrainerCallback } from "../../contracts/callback.ts";
import { checkWord } from "../../internal/check-word.ts";
import { PeriodicEvalError } from "../../errors.ts";
import type { Awaitable, Json } from "../../contracts/json.ts";
import { copyJson, jsonFault } from "../../internal/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import type { GuardContext } from "../../contracts/guard.ts";
import { checkName } from "../../internal/names.ts";
import { seedOf } from "../../random/streams.ts";
import { keepHookEvidence } from "../window/hook-evidence.ts";
import { noFlow, type Flow } from "./maybe-async.ts";
import { guarded, type Guarded } from "../window/run-guarded.ts";
import type { Run } from "../run.ts";

type Metrics = Readonly<Record<string, number>>;

/** The hooks that take a context only. */
export type PlainHook =
  | "onTrainBegin"
  | "onEpochBegin"
  | "onEpochEnd"
  | "onStepBegin"
  | "onStepEnd"
  | "onLog"
  | "onSave"
  | "onTrainEnd";

const none: Metrics = Object.freeze({});

/** Calls a hook of every callback that has it, in the order given. */
export function callHooks(run: Run, hook: PlainHook, metrics: Metrics = none): Flow<void> {
  return run.callbacks.some((callback) => callback[hook] !== undefined)
    ? callEach(run, hook, metrics)
    : noFlow;
}

function* callEach(run: Run, hook: PlainHook, metrics: Metrics): Flow<void> {
  for (const callback of run.callbacks) {
    if (callback[hook] !== undefined)
      yield* callHook(run, callback, hook, (context) => callback[hook]!(context), metrics);
  }
}

/** Tells loggers and callbacks of the snapshots written since it was last called. */
export function* tellFinished(run: Run): Flow<void> {
  for (let next = run.finished.shift(); next !== undefined; next = run.finished.shift()) {
    const { snapshot, failure } = next;
    yield* run.telling.snapshot(snapshot);
    if (failure?.by) yield* tellError(run, failure.by, failure.error);
    for (const callback of run.callbacks) {
      if (callback.onSnapshot === undefined) continue;
      yield* callHook(
        run,
        callback,
        "onSnapshot",
        (context) => callback.onSnapshot!(context, snapshot),
        none,
      );
    }
  }
}

/** Tells a callback of an error. What that throws is a warning: there is nobody else to tell. */
export function* tellError(run: Run, callback: TrainerCallback, error: unknown): Flow<void> {
  if (callback.onError === undefined) return;
  const outcome = yield* insideGuards(run, callback, "onError", () =>
    callback.onError!(contextOf(run, callback, none), error),
  );
  if ("error" in outcome)
    run.telling.warn(`callback "${callback.id}"`, `onError threw: ${errorMessage(outcome.error)}`);
}

/**
 * What a checkpoint carries of a callback, undefined where it gives nothing. One that cannot tell, or tells what JSON
 * cannot hold, ends no training: what it gave last stands.
 */
export function* stateOf(run: Run, callback: TrainerCallback): Flow<Json | undefined> {
  if (callback.state === undefined) return undefined;
  const outcome = yield* insideGuards(run, callback, "state", () => {
    const state = callback.state!();
    const fault = state === undefined ? null : jsonFault(state);
    // The callback may go on changing what it gave.
    if (fault === null) return state === undefined ? state : copyJson(state);
    throw new PeriodicEvalError({
      code: "config",
      where: `callback "${callback.id}" state${fault.path}`,
      got: fault.what,
      expected: "what JSON gives back unchanged",
      fix: "Keep numbers, texts, booleans, lists and plain objects in the state, and null where there is no number.",
    });
  });
  if ("value" in outcome) {
    run.states.set(callback.id, outcome.value);
    return outcome.value;
  }
  const earlier = run.states.get(callback.id);
  const then = earlier === undefined ? "has nothing of it" : "has what it gave before";
  const message = `state threw, and the checkpoint of step ${run.progress.step} ${then}: ${errorMessage(outcome.error)}`;
  yield* tellFailure(run, callback, message, outcome.error);
  return earlier;
}

function* callHook(
  run: Run,
  callback: TrainerCallback,
  hook: PlainHook | "onSnapshot",
  body: (context: CallbackContext) => Awaitable<void>,
  metrics: Metrics,
): Flow<void> {
  const outcome = yield* insideGuards(run, callback, hook, () => body(contextOf(run, callback, metrics)));
  if (!("error" in outcome)) return;
  const message = `${hook} threw at step ${run.progress.step}: ${errorMessage(outcome.error)}`;
  yield* tellFailure(run, callback, message, outcome.error);
}

function* tellFailure(run: Run, callback: TrainerCallback, message: string, error: unknown): Flow<void> {
  run.telling.warn(`callback "${callback.id}"`, message);
  if (run.options.onFailure === "throw") run.toThrow ??= error;
  yield* tellError(run, callback, error);
}

/** Few guards ask for the seed, so it is not computed for all. */
class Place implements GuardContext {
  readonly #run: Run;
  readonly #callback: TrainerCallback;
  readonly #hook: string;

  constructor(run: Run, callback: TrainerCallback, hook: string) {
    this.#run = run;
    this.#callback = callback;
    this.#hook = hook;
  }

  get seed(): string {
    const { seed, phase, progress } = this.#run;
    return seedOf(seed, phase, this.#callback.id, this.#hook, progress.step);
  }
}

/** Runs what a callback gives inside the guards that stand round hooks. */
function* insideGuards<T>(
  run: Run,
  callback: TrainerCallback,
  hook: string,
  body: () => Awaitable<T>,
): Flow<Guarded<T>["outcome"]> {
  const place = new Place(run, callback, hook);
  run.hook = hook;
  const { outcome, evidence } = yield* guarded(run.hookGuards, () => place, body);
  run.hook = null;
  for (const piece of evidence) {
    if (piece.intact === false) keepHookEvidence(run, callback, hook, piece);
  }
  return outcome;
}

function contextOf(run: Run, callback: TrainerCallback, metrics: Metrics): CallbackContext {
  return {
    phase: run.phase,
    progress: run.progress,
    previous: run.previous,
    signal: run.signal,
    metrics,
    measure: (request) => enqueue(run, callback, request),
    requestStop(reason) {
      run.stop ??= reason;
    },
    requestSave(reason) {
      run.save ??= reason;
    },
    report(reported) {
      run.reported.push(reported);
    },
    warn: (message) => run.telling.warn(`callback "${callback.id}"`, message),
  };
}

/** Several requests of one id at one step are one firing that lists all thresholds. */
function enqueue(run: Run, by: TrainerCallback, request: MeasureRequest): void {
  const where = `callback "${by.id}" measure`;
  checkName(`${where} id`, request.id);
  if (request.on !== undefined) checkWord(`${where} on`, request.on, ["model", "base"]);
  if (!run.isMeasuring) {
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: `a request for "${request.id}" after the end of training`,
      expected: "requests up to and in onTrainEnd",
      fix: "Ask in an earlier hook.",
    });
  }
  const same = run.queue.findIndex(({ id }) => id === request.id);
  const queued = run.queue[same];
  if (queued === undefined) {
    run.queue.push({ ...request, by });
  } else if (queued.evaluation === request.evaluation && (queued.on ?? "model") === (request.on ?? "model")) {
    run.queue[same] = { ...queued, crossed: [...queued.crossed, ...request.crossed] };
  } else {
    throw new PeriodicEvalError({
      code: "config",
      where: `${where} id`,
      got: `"${request.id}", which callback "${queued.by.id}" asked for at this step with another evaluation`,
      expected: "an id for each evaluation",
      fix: "Give one of the requests another id.",
    });
  }
}
