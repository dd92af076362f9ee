import {
  PeriodicEvalError,
  type Abilities,
  type EvaluableModel,
  type Prompt,
  type RenderedPrompt,
} from "@periodic-eval/core";
import { configError, errorMessage, modelError } from "@periodic-eval/contracts/options";
import { renderEach, renderPrompts } from "@periodic-eval/core/evaluations";

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

/**
 * Returns how many tokens a prompt may have; null if the model's context length is unknown, or it has no tokenizer.
 *
 * @param prompts Prompts of which the error states the longest.
 * @throws PeriodicEvalError `config` if `maxNewTokens` leaves no room for a prompt; see `isNoRoom`.
 */
export async function promptBudget(
  name: string,
  model: TokenizingModel,
  maxNewTokens: number,
  prompts: readonly Prompt[] = [],
): Promise<number | null> {
  const { contextLength, tokenizer } = model;
  if (contextLength === null || tokenizer === undefined) return null;
  if (contextLength > maxNewTokens) return contextLength - maxNewTokens;
  const fitted = await fitPrompts(model, prompts, { budget: null, overflow: "report" });
  const longest = Math.max(0, ...fitted.map((fit) => ("reason" in fit ? 0 : (fit.ids?.length ?? 0))));
  throw configError({
    where: `${name} options`,
    path: ["maxNewTokens"],
    got: `${maxNewTokens} beside prompts of up to ${longest} tokens, for a context of ${contextLength} tokens`,
    expected: `at most ${contextLength - 1}, which leaves room for the prompt`,
    fix: "Lower maxNewTokens, or use a model with a longer context.",
  });
}

/** Whether an error says that completions leave no room for prompts. */
export const isNoRoom = (error: unknown): error is PeriodicEvalError =>
  PeriodicEvalError.is(error, "config") && error.path[0] === "maxNewTokens";

/** Renders prompts at once, and cuts or rejects each that exceeds its budget. */
export async function fitPrompts(
  { tokenizer }: TokenizingModel,
  prompts: readonly Prompt[],
  fitting: Fitting,
): Promise<readonly (FittedPrompt | UnaskedPrompt)[]> {
  if (tokenizer === undefined)
    return prompts.map((prompt) => ({ prompt, ids: null, text: null, truncatedTokens: 0 }));
  const results = await renderEach(tokenizer, prompts, (some) => renderPrompts(tokenizer, some));
  return results.map((result, at) => fitPrompt(prompts[at]!, result, fitting));
}

function fitPrompt(
  prompt: Prompt,
  result: PromiseSettledResult<RenderedPrompt>,
  fitting: Fitting,
): FittedPrompt | UnaskedPrompt {
  if (result.status === "rejected")
    return { status: "template_failure", reason: errorMessage(result.reason), promptTokens: null };
  const { ids, text } = result.value;
  const { budget, overflow } = fitting;
  const over = budget === null ? 0 : Math.max(0, ids.length - budget);
  if (over === 0) return { prompt, ids, text, truncatedTokens: 0 };
  if (overflow === "report") {
    const reason = `a prompt of ${ids.length} tokens, ${budget} fit`;
    return { status: "overflow", reason, promptTokens: ids.length };
  }
  const remaining = ids.slice(over);
  return { prompt: { ids: remaining }, ids: remaining, text, truncatedTokens: over };
}

/**
 * Returns the text of the first prompt that fits the model; null if it has no text, or without a tokenizer.
 *
 * @throws PeriodicEvalError `model` if no prompt fits, so that a failing template is reported before step 1.
 */
export async function firstText(
  name: string,
  model: TokenizingModel,
  items: readonly { readonly id: string; readonly prompt: Prompt }[],
  fitting: Fitting,
): Promise<string | null> {
  const fit = (some: typeof items) => {
    const prompts = some.map(({ prompt }) => prompt);
    return fitPrompts(model, prompts, fitting);
  };
  const isUsable = (prompt: FittedPrompt | UnaskedPrompt): prompt is FittedPrompt => !("reason" in prompt);
  // The first prompt usually fits.
  const [first] = await fit(items.slice(0, 1));
  if (first === undefined) return null;
  if (isUsable(first)) return first.text;
  const usable = (await fit(items.slice(1))).find(isUsable);
  if (usable !== undefined) return usable.text;
  throw modelError(
    `${name} prompt`,
    `no document with a usable prompt ("${items[0]!.id}": ${first.reason})`,
    "prompts that the model's chat template renders and that fit its context",
    "Choose another template or shorter prompts, or lower the number of new tokens.",
  );
}
