import {
  type AnyEvaluation,
  type CallOptions,
  type EvaluableModel,
  type MeasurementPace,
  PeriodicEvalError,
  type MeasureContext,
  type Row,
  type SampleRange,
  type Awaitable,
} from "@periodic-eval/contracts";
import { isCount, quoteValue } from "@periodic-eval/contracts/options";
import { startTimeout, workingSeconds } from "@periodic-eval/store";
import { isDeadline } from "../../evaluations/kit/measure-in-batches.ts";
import { wrapModel } from "../../model/share-generations.ts";
import { onYield } from "../../model/event-loop.ts";
import type { Portion } from "../budget/governor.ts";
import type { MeasurementProgress, ProgressPoint } from "../budget/learned.ts";
import { reducesSamples } from "../budget/share-seconds.ts";
import { checkIds, checkRows } from "../records/grading.ts";
import type { Prepared } from "./prepare.ts";

/** Between two calls of `report` without a new row. */
const tickSeconds = 1;

interface RecorderOptions {
  readonly evaluation: AnyEvaluation;
  readonly clock: () => number;
  /** Called with the rows so far, at the beginning, with each row or batch, and each second in between. */
  readonly report: (done: number, pace: MeasurementPace) => void;
}

/** Records when a measurement had come how far, and ends it at its deadline. */
export class ProgressRecorder {
  readonly #options: RecorderOptions;
  readonly #deadline: ReturnType<typeof deadlineAt>;
  readonly #points: ProgressPoint[] = [];
  #deadlineSeconds: number | null = null;
  #calls = 0;
  #firstPortion: MeasurementProgress["firstPortion"] = null;
  #began: number | null = null;
  #done = 0;
  #counted = 0;
  #written = 0;
  #reportedAt = 0;
  #isOver = false;
  /** When the measurement last showed that it makes progress, on `workingSeconds()`, which tests' clocks do not replace. */
  readonly heartbeat = { at: workingSeconds() };
  /** The seconds of the measurement, once it is over. */
  measureSeconds = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#deadline = deadlineAt(() => this.#deadlineSeconds, options.clock);
  }

  /** Aborted at the deadline. */
  get signal(): AbortSignal {
    return this.#deadline.signal;
  }

  begin(): void {
    this.#began = this.#options.clock();
    this.progress(0);
  }

  /** @param deadline When the portion is cut off, on the clock; null for never. */
  beginPortion(done: number, deadline: number | null): void {
    if (done > 0) this.#firstPortion ??= { rows: done, seconds: this.seconds };
    this.#deadlineSeconds = deadline;
    this.#deadline.check();
  }

  get seconds(): number {
    return this.#options.clock() - this.#began!;
  }

  /** Notes that `done` rows are measured. */
  progress(done: number): void {
    // An evaluation that was abandoned may still report.
    if (this.#isOver) return;
    this.heartbeat.at = workingSeconds();
    if (done > 0) this.#points.push({ rows: done, seconds: this.seconds, calls: this.#calls });
    this.#deadline.check();
    this.#done = done;
    this.#report();
  }

  /** @throws PeriodicEvalError `model` after the measurement: nothing may read the model of a later step. */
  countCall(): void {
    if (this.#isOver)
      throw new PeriodicEvalError({
        code: "model",
        where: `evaluation "${this.#options.evaluation.name}"`,
        got: "a call of the model after measure",
        expected: "calls until measure returns",
        fix: "Await every call of the model, and keep what grade needs in the rows.",
      });
    this.#calls += 1;
    this.showProgress();
    this.#deadline.check();
  }

  /** Notes tokens that a call has counted at its end, or is writing, and reports the pace each second. */
  showProgress({ counted = 0, written = 0 } = {}): void {
    this.heartbeat.at = workingSeconds();
    this.#counted += counted;
    this.#written += written;
    if (this.heartbeat.at - this.#reportedAt >= tickSeconds) this.#report();
  }

  #report(): void {
    if (this.#isOver || this.#began === null) return;
    this.#reportedAt = workingSeconds();
    // A call counts what it has written when it ends.
    const tokens = Math.max(this.#counted, this.#written);
    this.#options.report(this.#done, { seconds: this.seconds, tokens: tokens > 0 ? tokens : null });
  }

  end(): void {
    this.#isOver = true;
    this.measureSeconds = this.seconds;
    this.#deadline.stop();
  }

  result(): MeasurementProgress {
    return {
      points: this.#points,
      firstPortion: this.#firstPortion,
      isCut: this.#deadline.signal.aborted,
      measureSeconds: this.measureSeconds,
    };
  }
}

/**
 * Ends one measurement when its time is up. `check` reads the clock and must be called wherever a measurement can end; `stop` must
 * be called when the measurement is over.
 *
 * @param at Returns when time is up, on the clock, each time it is called; null for never.
 */
export function deadlineAt(at: () => number | null, clock: () => number) {
  const controller = new AbortController();
  let stop = () => {};
  const check = () => {
    stop();
    const end = at();
    if (end === null || controller.signal.aborted) return;
    const left = end - clock();
    // A timer also reaches an engine in the middle of a call, if the engine pauses there.
    if (left > 0) stop = startTimeout(left, check);
    else controller.abort(timeIsUp());
  };
  check();
  return { signal: controller.signal, check, stop: () => stop() };
}

const timeIsUp = () =>
  new PeriodicEvalError({
    code: "deadline",
    where: "measure",
    got: "a measurement whose time is up",
    expected: "measure to return the rows measured so far",
    fix: "Raise the session's budget to measure more.",
  });

/**
 * Wraps a model so that the tokens it and its base read and generate are counted. `tokens` returns their number so far; null if
 * the engine reported none, or something that is not a count.
 *
 * @param onCall Called before each call of the model. If it throws, the call rejects.
 * @param onProgress Called when a call makes progress, with the tokens that it counts, and when it ends.
 */
export function countTokens(
  model: EvaluableModel,
  onCall: () => void = () => undefined,
  onProgress: (tokens?: number) => void = () => undefined,
) {
  let tokens: number | null = null;
  const counted = (options: CallOptions): CallOptions => {
    onCall();
    return {
      ...options,
      countTokens(more) {
        onProgress(more);
        tokens = (tokens ?? 0) + more;
        options.countTokens?.(more);
      },
      beforeRequest() {
        onProgress();
        return options.beforeRequest?.() ?? (() => onProgress());
      },
    };
  };
  return {
    model: wrapModel(model, (ask) => async (requests, options) => {
      try {
        return await ask(requests, counted(options));
      } finally {
        onProgress();
      }
    }),
    tokens: () => (isCount(tokens) ? tokens : null),
  };
}

export interface RowsRequest {
  readonly evaluation: AnyEvaluation;
  readonly prepared: Prepared;
  /** Names the streams of samples: the same for all measurements of a step. */
  readonly seed: string;
  readonly signal: AbortSignal;
  readonly recorder: ProgressRecorder;
  /** Returns what to measure next, once `done` rows took `seconds`; no rows end the measurement. */
  portion(done: number, seconds: number): Portion;
  /** Starts each call of `measure` and waits for it; `abandon` ends one that does not settle. Default: waits for ever. */
  settle?(heartbeat: { at: number }, call: () => Awaitable<unknown>, abandon: () => void): Awaitable<unknown>;
}

/**
 * Runs `measure` on all items at once or in portions, and checks the rows. If a deadline ends it, the rows measured by then are
 * returned.
 *
 * @throws PeriodicEvalError `data` for wrong rows; whatever the evaluation throws.
 */
export async function measureRows(request: RowsRequest): Promise<readonly Row[]> {
  const { evaluation, prepared, seed, recorder, settle = (_, call) => call() } = request;
  const where = `evaluation "${evaluation.name}" measure`;
  const abandoned = new AbortController();
  const abandon = () => abandoned.abort(new Error("the measurement was abandoned"));
  const signal = AbortSignal.any([request.signal, recorder.signal, abandoned.signal]);
  onYield(signal, (written) => recorder.showProgress({ written }));
  const { concurrentCalls = 1 } = prepared.target;
  const rows: Row[] = [];
  try {
    recorder.begin();
    for (;;) {
      const { rows: next, deadline } = request.portion(rows.length, recorder.seconds);
      if (next <= 0) break;
      recorder.beginPortion(rows.length, deadline);
      const { items, samples } = portionOf(evaluation, prepared.items, rows.length, next);
      const perItem = samples.end - samples.first;
      const before = rows.length;
      const progress = (done: number) => recorder.progress(before + perItem * done);
      const context: MeasureContext = { seed, signal, samples, progress, concurrentCalls };
      let answer: unknown;
      try {
        // The model's abilities were checked when the evaluation was prepared.
        const target = prepared.target as never;
        const call = () => evaluation.measure(target, items, context);
        answer = await settle(recorder.heartbeat, call, abandon);
      } catch (error) {
        if (isDeadline(signal)) break;
        throw error;
      }
      const measured = checkRows(answer, where);
      checkPortion(measured, items, perItem, where);
      // As arguments of one call, more than about 100,000 rows overflow the stack.
      for (const row of measured) rows.push(row);
      if (measured.length < perItem * items.length || signal.aborted) break;
    }
  } finally {
    recorder.end();
  }
  checkIds(rows, where);
  return rows;
}

function checkPortion(rows: readonly Row[], items: readonly Row[], perItem: number, where: string): void {
  // With too many rows a measurement that was cut short could count as whole, and become a baseline.
  if (rows.length > perItem * items.length) throw tooManyRows(where, rows.length, items.length, perItem);
  const stray = rowOfNoItem(rows, items);
  if (stray !== undefined) throw noSuchItem(where, stray, items);
}

/** Returns what the rows from `done` on are: further items with all samples, or further samples of all items. */
function portionOf(
  evaluation: AnyEvaluation,
  items: readonly Row[],
  done: number,
  next: number,
): { readonly items: readonly Row[]; readonly samples: SampleRange } {
  const { samplesPerItem = 1 } = evaluation;
  if (reducesSamples(evaluation) && items.length > 0) {
    const first = done / items.length;
    return { items, samples: { first, end: first + next / items.length } };
  }
  const first = done / samplesPerItem;
  return {
    items: items.slice(first, first + next / samplesPerItem),
    samples: { first: 0, end: samplesPerItem },
  };
}

/** Returns the first row whose id is not an item's id, alone or followed by a separator and anything (`q1#0`). */
function rowOfNoItem(rows: readonly Row[], items: readonly Row[]): Row | undefined {
  const ids = new Set(items.map(({ id }) => id));
  const isOfItem = ({ id }: Row) =>
    ids.has(id) || [...id.matchAll(/[^\p{L}\p{N}]/gu)].some(({ index }) => ids.has(id.slice(0, index)));
  return rows.find((row) => !isOfItem(row));
}

const noSuchItem = (where: string, { id }: Row, items: readonly Row[]) =>
  new PeriodicEvalError({
    code: "data",
    where,
    got: `a row with the id ${quoteValue(id)}, which no item has`,
    expected: `an item's id, alone or before the number of a sample: ${quoteValue(items[0]?.id ?? "q1")}, "${items[0]?.id ?? "q1"}#0"`,
    fix: "Return the item's id with each row; number the samples of one item.",
  });

function tooManyRows(where: string, rows: number, items: number, samplesPerItem: number) {
  return new PeriodicEvalError({
    code: "data",
    where,
    got: `${rows} rows for ${items} items`,
    expected: `at most ${samplesPerItem * items}: samplesPerItem is ${samplesPerItem}`,
    fix: "Set samplesPerItem to the number of rows that measure returns for each item.",
  });
}
