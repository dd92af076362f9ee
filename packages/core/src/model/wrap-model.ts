import type { CallOptions, EvaluableModel } from "@periodic-eval/contracts";

/** Answers requests of one ability, one result per request. */
export type Ask<Q, A> = (requests: readonly Q[], options: CallOptions) => Promise<readonly A[]>;

/** Returns a model whose calls, and those of its base, go through `around`. */
export function wrapModel(
  model: EvaluableModel,
  around: <Q, A>(ask: Ask<Q, A>) => Ask<Q, A>,
): EvaluableModel {
  const { contextLength, layerCount, tokenizer, base, isServed, concurrentCalls, toleranceNats, check } =
    model;
  const { logLikelihoods, nextToken, generate, hiddenStates } = model;
  return {
    // Read on access, as the model does: it may choose its engine late.
    get identity() {
      return model.identity;
    },
    contextLength,
    ...(layerCount !== undefined && { layerCount }),
    ...(isServed !== undefined && { isServed }),
    ...(concurrentCalls !== undefined && { concurrentCalls }),
    ...(toleranceNats !== undefined && { toleranceNats }),
    ...(tokenizer && { tokenizer }),
    ...(logLikelihoods && { logLikelihoods: around(logLikelihoods.bind(model)) }),
    ...(nextToken && { nextToken: around(nextToken.bind(model)) }),
    ...(generate && { generate: around(generate.bind(model)) }),
    ...(hiddenStates && { hiddenStates: around(hiddenStates.bind(model)) }),
    ...(base && { base: wrapModel(base, around) }),
    ...(check && { check: check.bind(model) }),
  };
}
