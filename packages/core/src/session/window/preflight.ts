import type {
  TrainerCallback,
  AnyEvaluation,
  Awaitable,
  MeasurementWarning,
  EvaluableModel,
  Progress,
  SessionOptions,
} from "@periodic-eval/contracts";
import { isNotCached } from "@periodic-eval/contracts/options";
import { workingSeconds } from "@periodic-eval/store";
import { warningOfAll } from "../records/new-snapshot.ts";
import type { Reporter } from "../records/reporter.ts";
import {
  evaluationPlace,
  lacksOptionalQuestions,
  prepareEvaluation,
  type ItemsCache,
  type Prepared,
} from "./prepare.ts";
import type { Timeouts } from "./timeouts.ts";
import { probeModel } from "./probe-model.ts";

export interface PreflightOptions extends Pick<SessionOptions, "model" | "modelOf" | "trainedTexts"> {
  readonly callbacks: readonly TrainerCallback[];
  readonly signal: AbortSignal;
  readonly timeouts: Timeouts;
  readonly reporter: Reporter;
}

/** Checks, before step 1, everything that callbacks may request, and keeps what it prepared. */
export class Preflight {
  readonly #options: PreflightOptions;
  readonly #cache: ItemsCache;
  /** Why optional evaluations are not measured. */
  readonly #disabled = new Map<AnyEvaluation, MeasurementWarning>();
  readonly #faults = new Map<"model" | "base", readonly MeasurementWarning[]>();

  constructor(options: PreflightOptions) {
    this.#options = options;
    const settle: ItemsCache["settle"] = (where, what, call) => this.#settle(where, what, call);
    this.#cache = { prepared: new Map(), settle };
  }

  /**
   * Checks abilities, data, item ids, the model's own numbers and graders. A problem that only the longest batch shows (out of
   * memory) becomes a `failed` snapshot of the first measurement, by default the one before step 1.
   */
  async run(at: Progress): Promise<void> {
    const { callbacks, signal, reporter } = this.#options;
    const model = await this.modelAt(at);
    const checked = new Set<unknown>();
    const checkOnce = async (target: Checked, where: string | null) => {
      const check = () => checkUnlessAborted(target, signal);
      if (!checked.has(target)) await (where === null ? check() : this.#settle(where, "check", check));
      checked.add(target);
    };
    for (const callback of callbacks) {
      for (const evaluation of callback.asks ?? []) {
        const { on = "model" } = callback;
        const where = evaluationPlace(callback, evaluation);
        const target = await this.#targetOf(model, evaluation, callback, at);
        if (target === null) continue;
        if (!checked.has(evaluation)) this.#warnOfQuestions(evaluation, where);
        await checkOnce(target, null);
        // A server's answers are checked by its own `check`.
        const isOwn = target.isServed === model.isServed;
        if (isOwn && !this.#faults.has(on)) await this.#probe(target, on);
        await checkOnce(evaluation, where);
      }
    }
    const isNothing = callbacks.every(({ asks }) => asks?.every((ask) => this.#disabled.has(ask)));
    for (const callback of callbacks)
      for (const evaluation of callback.asks?.filter((ask) => this.#disabled.has(ask)) ?? []) {
        const where = isNothing ? "Nothing will be measured" : evaluationPlace(callback, evaluation);
        reporter.warn(where, `${this.#disabled.get(evaluation)!.message}. Pass questions="FILE.jsonl".`);
      }
  }

  /** Returns why an evaluation is not measured in this session; null if it is. */
  whyDisabled(evaluation: AnyEvaluation): MeasurementWarning | null {
    return this.#disabled.get(evaluation) ?? null;
  }

  /** Returns the model to measure; null for an optional evaluation whose questions cannot be had. */
  async #targetOf(
    model: EvaluableModel,
    evaluation: AnyEvaluation,
    callback: TrainerCallback,
    at: Progress,
  ): Promise<EvaluableModel | null> {
    try {
      return (await this.prepare(model, evaluation, callback.on ?? "model", callback, at)).target;
    } catch (error) {
      if (!lacksOptionalQuestions(evaluation, error)) throw error;
      const reason = isNotCached(error) ? error.detail.reason : error.got;
      const why = `nobody asked for ${callback.id} by name, and its questions could not be downloaded (${reason})`;
      this.#disabled.set(evaluation, warningOfAll("disabled", why, false));
      return null;
    }
  }

  /** Returns why nothing that the model, or its base, is asked can be judged; empty if no probe says so. */
  faultsOf(on: "model" | "base"): readonly MeasurementWarning[] {
    return this.#faults.get(on) ?? [];
  }

  async #probe(target: EvaluableModel, on: "model" | "base"): Promise<void> {
    const { signal, trainedTexts = [], reporter } = this.#options;
    const probe = () => probeModel(target, trainedTexts, { signal });
    const where = `model "${target.identity.name}"`;
    this.#faults.set(on, []);
    try {
      this.#faults.set(on, await this.#settle(where, "the probe", probe));
    } catch {
      // `Timeouts` has reported a model that does not answer, and its measurements will.
    }
    for (const { message } of this.faultsOf(on)) reporter.warn(where, message);
  }

  /** Warns of what the questions show before any answer. */
  #warnOfQuestions(evaluation: AnyEvaluation, where: string): void {
    for (const { message } of evaluation.warnings?.([], {}) ?? [])
      this.#options.reporter.warn(where, message);
  }

  async modelAt(at: Progress): Promise<EvaluableModel> {
    const { model } = this.#options;
    return typeof model === "function" ? model(at) : model;
  }

  #settle<T>(where: string, what: string, call: () => Awaitable<T>): Awaitable<T> {
    return this.#options.timeouts.run({ where, what, heartbeat: { at: workingSeconds() } }, call);
  }

  async prepare(
    model: EvaluableModel,
    evaluation: AnyEvaluation,
    on: "model" | "base",
    callback: TrainerCallback,
    at: Progress,
  ): Promise<Prepared> {
    const measured = (await this.#options.modelOf?.(callback, at)) ?? model;
    return prepareEvaluation(this.#cache, measured, evaluation, on, evaluationPlace(callback, evaluation));
  }
}

type Checked = Pick<EvaluableModel, "check">;

/** An abort during the check is no fault of the model or the grader. */
export async function checkUnlessAborted(target: Checked, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  try {
    await target.check?.({ signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
