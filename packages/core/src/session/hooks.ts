import type { CallbackContext, MeasureRequest, TrainerCallback } from "../callback/types.ts";
import { PeriodicEvalError } from "../errors.ts";
import type { Awaitable } from "../json.ts";
import { messageOf } from "../message-of.ts";
import { checkName } from "../names.ts";
import { seedOf } from "../random/streams.ts";
import type { Evidence } from "../snapshots/schema.ts";
import { disturbed, seen } from "./broken-receipt.ts";
import { wait, type Flow } from "./maybe-async.ts";
import { guarded, isBroken } from "./run-guarded.ts";
import type { Run } from "./run.ts";

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
export function* callHooks(run: Run, hook: PlainHook, metrics: Metrics = none): Flow<void> {
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
  try {
    yield* wait(callback.onError(contextOf(run, callback, none), error));
  } catch (second) {
    run.telling.warn(`callback "${callback.id}"`, `onError threw: ${messageOf(second)}`);
  }
}

function* callHook(
  run: Run,
  callback: TrainerCallback,
  hook: PlainHook | "onSnapshot",
  body: (context: CallbackContext) => Awaitable<void>,
  metrics: Metrics,
): Flow<void> {
  const place = {
    // Asked by few guards, so it is not computed for all.
    get seed() {
      return seedOf(run.seed, run.phase, callback.id, hook, run.progress.step);
    },
  };
  const { outcome, evidence } = yield* guarded(
    run.hookGuards,
    () => place,
    () => body(contextOf(run, callback, metrics)),
  );
  for (const piece of evidence) {
    if (piece.intact === false) keepEvidence(run, callback, hook, piece);
  }
  if ("error" in outcome) {
    run.telling.warn(
      `callback "${callback.id}"`,
      `${hook} threw at step ${run.progress.step}: ${messageOf(outcome.error)}`,
    );
    if (run.options.onFailure === "throw") run.toThrow ??= outcome.error;
    yield* tellError(run, callback, outcome.error);
  }
}

function keepEvidence(run: Run, callback: TrainerCallback, hook: string, piece: Evidence): void {
  const by = `${hook} of callback "${callback.id}" at step ${run.progress.step}`;
  const kept = run.hookEvidence.get(callback) ?? [];
  const isKept = kept.some(({ part, advisory }) => advisory === true && part === piece.part);
  // One leak at every step is one entry of the next snapshot.
  if (!isKept) {
    const note = [piece.note, `by ${by}`].filter(Boolean).join("; ");
    run.hookEvidence.set(callback, [...kept, { ...piece, note }]);
  }
  if (isBroken(piece)) return disturbed(run, piece, by);
  const told = `${callback.id} ${piece.part}`;
  if (run.toldAdvisories.has(told)) return;
  run.toldAdvisories.add(told);
  run.telling.warn(`guard "${piece.part}"`, `saw a change by ${by}, and tells of it once: ${seen(piece)}`);
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
