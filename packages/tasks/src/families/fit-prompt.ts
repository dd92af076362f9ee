import {
  PeriodicEvalError,
  type Abilities,
  type EvaluableModel,
  type Prompt,
  type RenderedPrompt,
} from "@periodic-eval/core";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { renderPrompt } from "@periodic-eval/core/evaluations";

/** A prompt that fits the model. */
export interface FittedPrompt {
  readonly prompt: Prompt;
  /** Null if the model has no tokenizer. */
  readonly ids: readonly number[] | null;
  readonly text: string | null;
  readonly truncatedTokens: number;
}

/** A prompt that is not sent to the model, and the reason. */
export interface UnaskedPrompt {
  readonly status: "overflow" | "template_failure";
  readonly reason: string;
  /** Null if the prompt could not be rendered. */
  readonly promptTokens: number | null;
}

export interface Fitting {
  /** In tokens; null if unbounded or unknown. */
  readonly budget: number | null;
  /** Handling of a prompt over the budget: it is skipped (`report`), or cut on the left. */
  readonly overflow: "report" | "left";
}

/** The part of a model that an evaluation sees if it wants the tokenizer. */
export type TokenizingModel = Pick<EvaluableModel, "contextLength"> & Partial<Pick<Abilities, "tokenizer">>;

/** Returns the length of the longest prompt in tokens; 0 without a tokenizer, or if none can be rendered. */
export const longestPrompt = (model: TokenizingModel, prompts: readonly Prompt[]): number =>
  Math.max(
    0,
    ...prompts.map((prompt) => {
      const fitted = fitPrompt(model, prompt, { budget: null, overflow: "report" });
      return "reason" in fitted ? 0 : (fitted.ids?.length ?? 0);
    }),
  );

/**
 * Returns how many tokens a prompt may have; null if the model's context length is unknown, or it has no tokenizer.
 *
 * @param prompts Prompts of which the error states the longest.
 * @throws PeriodicEvalError `config` if `maxNewTokens` leaves no room for a prompt; see `isNoRoom`.
 */
export function promptBudget(
  name: string,
  model: TokenizingModel,
  maxNewTokens: number,
  prompts: readonly Prompt[] = [],
): number | null {
  const { contextLength, tokenizer } = model;
  if (contextLength === null || tokenizer === undefined) return null;
  if (contextLength > maxNewTokens) return contextLength - maxNewTokens;
  throw configError({
    where: `${name} options`,
    path: ["maxNewTokens"],
    got: `${maxNewTokens} beside prompts of up to ${longestPrompt(model, prompts)} tokens, for a context of ${contextLength} tokens`,
    expected: `at most ${contextLength - 1}, which leaves room for the prompt`,
    fix: "Lower maxNewTokens, or use a model with a longer context.",
  });
}

/** Whether an error says that completions leave no room for prompts. */
export const isNoRoom = (error: unknown): error is PeriodicEvalError =>
  PeriodicEvalError.is(error, "config") && error.path[0] === "maxNewTokens";

/** Renders a prompt, and cuts or rejects it if it exceeds its budget. */
export function fitPrompt(
  model: TokenizingModel,
  prompt: Prompt,
  fitting: Fitting,
): FittedPrompt | UnaskedPrompt {
  const { tokenizer } = model;
  if (tokenizer === undefined) return { prompt, ids: null, text: null, truncatedTokens: 0 };
  let rendered: RenderedPrompt;
  try {
    rendered = renderPrompt(tokenizer, prompt);
  } catch (error) {
    return { status: "template_failure", reason: errorMessage(error), promptTokens: null };
  }
  const { ids, text } = rendered;
  const { budget, overflow } = fitting;
  const over = budget === null ? 0 : Math.max(0, ids.length - budget);
  if (over === 0) return { prompt, ids, text, truncatedTokens: 0 };
  if (overflow === "report") {
    const reason = `a prompt of ${ids.length} tokens, ${budget} fit`;
    return { status: "overflow", reason, promptTokens: ids.length };
  }
  const kept = ids.slice(over);
  return { prompt: { ids: kept }, ids: kept, text, truncatedTokens: over };
}

/**
 * Returns the text of the first prompt that fits the model; null if it has no text, or without a tokenizer.
 *
 * @throws PeriodicEvalError `model` if no prompt fits, so that a failing template is reported before step 1.
 */
export function firstText(
  name: string,
  model: TokenizingModel,
  items: readonly { readonly id: string; readonly prompt: Prompt }[],
  fitting: Fitting,
): string | null {
  let first: { readonly id: string; readonly reason: string } | null = null;
  for (const { id, prompt } of items) {
    const fitted = fitPrompt(model, prompt, fitting);
    if (!("reason" in fitted)) return fitted.text;
    first ??= { id, reason: fitted.reason };
  }
  if (first === null) return null;
  throw new PeriodicEvalError({
    code: "model",
    where: `${name} prompt`,
    got: `no document with a usable prompt ("${first.id}": ${first.reason})`,
    expected: "prompts that the model's chat template renders and that fit its context",
    fix: "Choose another template or shorter prompts, or lower the number of new tokens.",
  });
}
