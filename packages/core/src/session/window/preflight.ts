import type { TrainerCallback } from "../../contracts/callback.ts";
import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import type { EvaluableModel } from "../../contracts/model.ts";
import type { Progress } from "../../contracts/schedule.ts";
import type { SessionOptions } from "../../contracts/session.ts";
import { errorMessage } from "../../internal/error-message.ts";
import type { Reporter } from "../records/reporter.ts";
import { evaluationPlace, prepareEvaluation, type ItemsCache, type Prepared } from "./prepare.ts";

export interface PreflightOptions extends Pick<SessionOptions, "model"> {
  readonly callbacks: readonly TrainerCallback[];
  readonly signal: AbortSignal;
  readonly reporter: Reporter;
}

/** Checks, before step 1, everything that callbacks may request, and keeps what it prepared. */
export class Preflight {
  readonly #options: PreflightOptions;
  readonly #cache: ItemsCache = { prepared: new Map() };
  /** Evaluations of optional callbacks whose data is missing, and why. */
  readonly #unavailable = new Map<AnyEvaluation, string>();

  constructor(options: PreflightOptions) {
    this.#options = options;
  }

  /**
   * Checks abilities, data, item ids, the model's own numbers and graders. A missing file of an optional callback becomes one
   * warning, and a `skipped` snapshot wherever it would have been measured. A problem that only the longest batch shows (out
   * of memory) becomes a `failed` snapshot of the first measurement, by default the one before step 1.
   */
  async run(at: Progress): Promise<void> {
    const { callbacks, signal, reporter } = this.#options;
    const model = await this.modelAt(at);
    const checked = new Set<unknown>();
    const checkOnce = async (one: Checked) => {
      if (!checked.has(one)) await checkUnlessAborted(one, signal);
      checked.add(one);
    };
    for (const callback of callbacks) {
      for (const evaluation of callback.asks ?? []) {
        try {
          const { target } = await this.prepare(model, evaluation, callback.on ?? "model", callback);
          await checkOnce(target);
          await checkOnce(evaluation);
        } catch (error) {
          if (callback.optional !== true || !isMissingFile(error)) throw error;
          const reason = errorMessage(error);
          this.#unavailable.set(evaluation, reason);
          reporter.warn(`callback "${callback.id}"`, `is optional and will be skipped: ${reason}`);
        }
      }
    }
  }

  async modelAt(at: Progress): Promise<EvaluableModel> {
    const { model } = this.#options;
    return typeof model === "function" ? model(at) : model;
  }

  prepare(
    model: EvaluableModel,
    evaluation: AnyEvaluation,
    on: "model" | "base",
    callback: TrainerCallback,
  ): Promise<Prepared> {
    return prepareEvaluation(this.#cache, model, evaluation, on, evaluationPlace(callback, evaluation));
  }

  /** Returns why an evaluation of an optional callback cannot be measured; null if it can. */
  whyUnavailable(evaluation: AnyEvaluation): string | null {
    return this.#unavailable.get(evaluation) ?? null;
  }
}

type Checked = Pick<EvaluableModel, "check">;

/** An abort during the check is no fault of the model or the grader. */
async function checkUnlessAborted(one: Checked, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  try {
    await one.check?.({ signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

const missing = new Set(["ENOENT", "ENOTDIR", "EISDIR", "EACCES", "EPERM"]);

/** Whether an error or one of its causes says that a file cannot be read: readers wrap the file system's error. */
export function isMissingFile(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (missing.has(String((cause as { code?: unknown }).code))) return true;
  }
  return false;
}
