import { isCount } from "../../internal/is-count.ts";
import type { CallOptions, EvaluableModel } from "../../contracts/model.ts";

/** A model whose tokens are counted; null while its engine tells of none, or tells what is no count. */
export interface CountedModel {
  readonly model: EvaluableModel;
  tokens(): number | null;
}

/**
 * The same model, and the tokens that it reads and draws from now on, those of its base included.
 *
 * @param onCall called before each call of the model.
 */
export function countTokens(model: EvaluableModel, onCall: () => void = () => undefined): CountedModel {
  let tokens: number | null = null;
  const add = (more: number) => void (tokens = (tokens ?? 0) + more);
  return { model: counting(model, add, onCall), tokens: () => (isCount(tokens) ? tokens : null) };
}

function counting(model: EvaluableModel, add: (tokens: number) => void, onCall: () => void): EvaluableModel {
  const { contextLength, tokenizer, base } = model;
  const told = (options: CallOptions): CallOptions => {
    onCall();
    return {
      ...options,
      countTokens(more) {
        add(more);
        options.countTokens?.(more);
      },
    };
  };
  return {
    // Read when asked, as the model itself does: the engine may be chosen late.
    get identity() {
      return model.identity;
    },
    contextLength,
    ...(tokenizer && { tokenizer }),
    ...(model.logLikelihoods && {
      logLikelihoods: (requests, options) => model.logLikelihoods!(requests, told(options)),
    }),
    ...(model.nextToken && {
      nextToken: (requests, options) => model.nextToken!(requests, told(options)),
    }),
    ...(model.generate && { generate: (requests, options) => model.generate!(requests, told(options)) }),
    ...(model.textEntropies && {
      textEntropies: (texts, options) => model.textEntropies!(texts, told(options)),
    }),
    ...(base && { base: counting(base, add, onCall) }),
  };
}
