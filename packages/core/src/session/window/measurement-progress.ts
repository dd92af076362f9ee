import {
  type AnyEvaluation,
  type CallOptions,
  type EvaluableModel,
  type MeasurementPace,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { isCount } from "@periodic-eval/contracts/options";
import { startTimeout, workingSeconds } from "@periodic-eval/store";
import { wrapModel } from "../../model/wrap-model.ts";
import type { RecordedProgress, ProgressPoint } from "../budget/learned.ts";

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
  #firstPortion: RecordedProgress["firstPortion"] = null;
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

  result(): RecordedProgress {
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
