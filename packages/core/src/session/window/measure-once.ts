import type { AnyEvaluation, Row } from "../../contracts/evaluation.ts";
import type { Guard } from "../../contracts/guard.ts";
import type { Awaitable } from "../../contracts/json.ts";
import type { MeasurementPace } from "../../contracts/session.ts";
import type { Evidence, Snapshot } from "../../contracts/snapshot.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { onYield } from "../../model/yield-to-events.ts";
import { startTimeout } from "../../internal/timeout.ts";
import { workingSeconds } from "../../internal/working-clock.ts";
import { noTiming } from "../records/new-snapshot.ts";
import type { Course, Mark } from "../budget/learned.ts";
import { countTokens } from "./count-tokens.ts";
import { measureRows } from "./measure-rows.ts";
import type { Patience } from "./patience.ts";
import { checkUnlessAborted } from "./preflight.ts";
import { modelIsReturned, provenanceOf, type Prepared } from "./prepare.ts";
import { runGuarded } from "./guarded.ts";

/** Between two calls of `progress` without a new row. */
const tickSeconds = 1;

export interface MeasureOnce {
  readonly evaluation: AnyEvaluation;
  readonly prepared: Prepared;
  readonly guards: readonly Guard[];
  /** The guards' evidence of the measurement just before in this window. */
  readonly justLeft: readonly Evidence[];
  /** Names the stream that replaces `Math.random`. */
  readonly seed: string;
  /** Names the streams of samples: the same for all measurements of a step. */
  readonly stepSeed: string;
  /** The run's seed, for provenance. */
  readonly provenanceSeed: string;
  readonly signal: AbortSignal;
  readonly clock: () => number;
  /** Returns how many rows to measure next, once `done` rows took `seconds`. Default: all at once. */
  readonly portions?: (done: number, seconds: number) => number;
  /** Returns when the measurement is cut off, on the clock; null for never. */
  readonly deadline?: () => number | null;
  /** Gives up on an evaluation that does not settle. Default: waits for ever. */
  readonly patience?: { readonly of: Patience; readonly where: string };
  /** Called with the rows so far, at the beginning, with each row or batch, and each second in between. */
  progress(done: number, pace: MeasurementPace): void;
  /** Called before measuring. Returns true if a snapshot already holds the result, and nothing needs to be measured. */
  before?(provenance: Snapshot["provenance"], weights: string | null): Awaitable<boolean>;
}

export type Measured = Course & {
  readonly receipt: readonly Evidence[];
  readonly provenance: Snapshot["provenance"] | null;
  readonly weights: string | null;
  readonly guardsSeconds: number;
  /** Null if the engine does not count tokens. */
  readonly tokens: number | null;
} & (
    | {
        readonly kind: "measured";
        readonly provenance: Snapshot["provenance"];
        readonly rows: readonly Row[];
      }
    | { readonly kind: "adopted" }
    | { readonly kind: "failed"; readonly error: unknown }
  );

/** Takes one measurement inside the guards. Never throws: an error is part of the result. */
export async function measureOnce(one: MeasureOnce): Promise<Measured> {
  const { evaluation, prepared, guards, clock, seed, justLeft } = one;
  const began = clock();
  let provenance: Snapshot["provenance"] | null = null;
  let weights = prepared.target.identity.weights;
  const deadline = deadlineAt(one.deadline ?? (() => null), clock);
  const course = new CourseRecorder(one, deadline);
  const { model: target, tokens } = countTokens(
    prepared.target,
    () => course.countCall(),
    (counted) => course.showSign({ counted }),
  );
  const { outcome, evidence: receipt } = await runGuarded(
    guards,
    (index) => {
      const left = justLeft[index];
      return left === undefined ? { seed } : { seed, justLeft: left };
    },
    async (fingerprint) => {
      weights = fingerprint ?? weights;
      provenance = provenanceOf(evaluation, prepared, one.provenanceSeed);
      if ((await one.before?.(provenance, weights)) === true) return null;
      // A server may replace its model, which no guard of this process observes.
      const probe = async () => prepared.target.isServed && checkUnlessAborted(prepared.target, one.signal);
      await probe();
      const rows = await course.measure({ ...prepared, target });
      await probe();
      return rows;
    },
  );
  deadline.stop();
  const facts = {
    ...course.facts(),
    receipt,
    provenance,
    weights,
    guardsSeconds: clock() - began - course.measureSeconds,
    tokens: tokens(),
  };
  if ("error" in outcome) return { ...facts, kind: "failed", error: outcome.error };
  if (outcome.value === null) return { ...facts, kind: "adopted" };
  // Wherever there are rows, the provenance is known.
  return { ...facts, kind: "measured", provenance: provenance!, rows: outcome.value };
}

/** Returns the timing of a snapshot with `items` rows. */
export const timingOf = (
  { guardsSeconds, measureSeconds, tokens }: Measured,
  items: number,
): Snapshot["timing"] => ({
  ...noTiming,
  total_seconds: guardsSeconds + measureSeconds,
  guards_seconds: guardsSeconds,
  measure_seconds: measureSeconds,
  items,
  tokens,
});

/** Runs `measure` and records when it had come how far. */
class CourseRecorder {
  readonly #one: MeasureOnce;
  readonly #deadline: Deadline;
  readonly #marks: Mark[] = [];
  #calls = 0;
  #firstPortion: Course["firstPortion"] = null;
  #measureSeconds = 0;
  /** On `workingSeconds()`, which tests' clocks do not replace. */
  readonly #sign = { at: workingSeconds() };
  readonly #abandoned = new AbortController();
  #began: number | null = null;
  #done = 0;
  #counted = 0;
  #written = 0;
  #reportedAt = 0;
  #isOver = false;

  constructor(one: MeasureOnce, deadline: Deadline) {
    this.#one = one;
    this.#deadline = deadline;
  }

  get measureSeconds(): number {
    return this.#measureSeconds;
  }

  /** @throws PeriodicEvalError `model` after the measurement: nothing may read the model of a later step. */
  countCall(): void {
    if (this.#isOver) throw modelIsReturned(this.#one.evaluation, "measure");
    this.#calls += 1;
    this.showSign();
    this.#deadline.check();
  }

  /** Notes tokens that a call has counted at its end, or is writing, and reports the pace each second. */
  showSign({ counted = 0, written = 0 } = {}): void {
    this.#sign.at = workingSeconds();
    this.#counted += counted;
    this.#written += written;
    if (this.#began === null || this.#sign.at - this.#reportedAt < tickSeconds) return;
    this.#report();
  }

  #report(): void {
    if (this.#isOver || this.#began === null) return;
    this.#reportedAt = workingSeconds();
    // A call counts what it has written when it ends.
    const tokens = Math.max(this.#counted, this.#written);
    const seconds = this.#one.clock() - this.#began;
    this.#one.progress(this.#done, { seconds, tokens: tokens > 0 ? tokens : null });
  }

  async measure(prepared: Prepared): Promise<readonly Row[]> {
    const { evaluation, signal, stepSeed, clock } = this.#one;
    const began = clock();
    this.#began = began;
    const progress = (done: number) => {
      // An evaluation that was abandoned may still report.
      if (this.#isOver) return;
      this.#sign.at = workingSeconds();
      if (done > 0) this.#marks.push({ rows: done, seconds: clock() - began, calls: this.#calls });
      this.#deadline.check();
      this.#done = done;
      this.#report();
    };
    const either = AbortSignal.any([signal, this.#deadline.signal, this.#abandoned.signal]);
    onYield(either, (written) => this.showSign({ written }));
    try {
      progress(0);
      const { concurrentCalls = 1 } = prepared.target;
      const context = { seed: stepSeed, signal: either, progress, concurrentCalls };
      const settle = (call: () => Awaitable<unknown>) => this.#settle(call);
      return await measureRows(evaluation, prepared, context, this.#portionsSince(began), settle);
    } finally {
      this.#isOver = true;
      this.#measureSeconds = clock() - began;
      this.#deadline.stop();
    }
  }

  #settle(call: () => Awaitable<unknown>): Awaitable<unknown> {
    const { patience, evaluation } = this.#one;
    if (patience === undefined) return call();
    const { of, where } = patience;
    const abandon = () => this.#abandoned.abort(new Error("the measurement was abandoned"));
    this.showSign();
    return of.run({ where, what: `measure of "${evaluation.name}"`, sign: this.#sign, abandon }, call);
  }

  #portionsSince(began: number): ((done: number) => number) | undefined {
    const { portions, clock } = this.#one;
    if (portions === undefined) return undefined;
    return (done) => {
      const seconds = clock() - began;
      const next = portions(done, seconds);
      if (done > 0 && next > 0) this.#firstPortion ??= { rows: done, seconds };
      return next;
    };
  }

  facts(): Course {
    return {
      marks: this.#marks,
      firstPortion: this.#firstPortion,
      isCut: this.#deadline.signal.aborted,
      measureSeconds: this.#measureSeconds,
    };
  }
}

type Deadline = ReturnType<typeof deadlineAt>;

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
