import { isCount } from "../../internal/is-count.ts";
import type { CallOptions, EvaluableModel } from "../../contracts/model.ts";

/**
 * Wraps a model so that the tokens it and its base read and generate are counted. `tokens` returns their number so far; null if
 * the engine reported none, or something that is not a count.
 *
 * @param onCall Called before each call of the model.
 */
export function countTokens(model: EvaluableModel, onCall: () => void = () => undefined) {
  let tokens: number | null = null;
  const add = (more: number) => void (tokens = (tokens ?? 0) + more);
  return { model: counting(model, add, onCall), tokens: () => (isCount(tokens) ? tokens : null) };
}

function counting(model: EvaluableModel, add: (tokens: number) => void, onCall: () => void): EvaluableModel {
  const { contextLength, tokenizer, base } = model;
  const counted = (options: CallOptions): CallOptions => {
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
    // Read on access, as the model does: it may choose its engine late.
    get identity() {
      return model.identity;
    },
    contextLength,
    ...(tokenizer && { tokenizer }),
    ...(model.logLikelihoods && {
      logLikelihoods: (requests, options) => model.logLikelihoods!(requests, counted(options)),
    }),
    ...(model.nextToken && {
      nextToken: (requests, options) => model.nextToken!(requests, counted(options)),
    }),
    ...(model.generate && { generate: (requests, options) => model.generate!(requests, counted(options)) }),
    ...(model.textEntropies && {
      textEntropies: (texts, options) => model.textEntropies!(texts, counted(options)),
    }),
    ...(base && { base: counting(base, add, onCall) }),
  };
}
