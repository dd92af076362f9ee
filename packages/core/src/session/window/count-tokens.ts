import type { CallOptions, EvaluableModel } from "../../contracts/model.ts";
import { isCount } from "../../internal/is-count.ts";
import { wrapModel } from "../../model/wrap-model.ts";

/**
 * Wraps a model so that the tokens it and its base read and generate are counted. `tokens` returns their number so far; null if
 * the engine reported none, or something that is not a count.
 *
 * @param onCall Called before each call of the model.
 */
export function countTokens(model: EvaluableModel, onCall: () => void = () => undefined) {
  let tokens: number | null = null;
  const counted = (options: CallOptions): CallOptions => {
    onCall();
    return {
      ...options,
      countTokens(more) {
        tokens = (tokens ?? 0) + more;
        options.countTokens?.(more);
      },
    };
  };
  return {
    model: wrapModel(model, (ask) => (requests, options) => ask(requests, counted(options))),
    tokens: () => (isCount(tokens) ? tokens : null),
  };
}
