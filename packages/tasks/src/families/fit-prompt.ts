import {
  PeriodicEvalError,
  type Abilities,
  type EvaluableModel,
  type Prompt,
  type RenderedPrompt,
} from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import { renderPrompt } from "@periodic-eval/core/evaluations";

/** A prompt that can be asked. */
export interface FittedPrompt {
  readonly prompt: Prompt;
  /** Null where the model shows no tokenizer. */
  readonly ids: readonly number[] | null;
  readonly text: string | null;
  readonly truncatedTokens: number;
}

/** Why a prompt is not asked. */
export interface UnaskedPrompt {
  readonly status: "overflow" | "template_failure";
  readonly reason: string;
  /** Null where it could not be rendered. */
  readonly promptTokens: number | null;
}

export interface Fitting {
  /** In tokens; null: unbounded, or nobody can tell. */
  readonly budget: number | null;
  /** A prompt over it is not asked, or cut on the left. */
  readonly overflow: "report" | "left";
}

/** Of the model no more than an evaluation sees that wants its tokenizer. */
export type Reading = Pick<EvaluableModel, "contextLength"> & Partial<Pick<Abilities, "tokenizer">>;

/**
 * How many tokens a prompt may have; null where the model does not say how long its context is, or shows no tokenizer.
 *
 * @throws PeriodicEvalError `config` where nothing is left for a prompt.
 */
export function promptBudget(name: string, model: Reading, maxNewTokens: number): number | null {
  const { contextLength, tokenizer } = model;
  if (contextLength === null || tokenizer === undefined) return null;
  if (contextLength > maxNewTokens) return contextLength - maxNewTokens;
  throw new PeriodicEvalError({
    code: "config",
    where: `${name} maxNewTokens`,
    got: `${maxNewTokens}, of a model whose context is ${contextLength} tokens long`,
    expected: `at most ${contextLength - 1}, and room for the prompt`,
    fix: "Lower maxNewTokens, or take a model with a longer context.",
  });
}

/** A prompt as it is asked within its budget. */
export function fitPrompt(model: Reading, prompt: Prompt, fitting: Fitting): FittedPrompt | UnaskedPrompt {
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
 * The first prompt that can be asked, as text; null where it has none, or nobody can tell.
 *
 * @throws PeriodicEvalError `model` where none can: a template that fails is told of before step 1.
 */
export function firstText(
  name: string,
  model: Reading,
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
    got: `no document that can be asked (of "${first.id}": ${first.reason})`,
    expected: "prompts that the model's chat template renders and its context holds",
    fix: "Choose another template or shorter prompts, or allow fewer new tokens.",
  });
}
