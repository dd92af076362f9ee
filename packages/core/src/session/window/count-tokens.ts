import type { CallOptions, EvaluableModel } from "@periodic-eval/contracts";
import { isCount } from "@periodic-eval/contracts/options";
import { wrapModel } from "../../model/wrap-model.ts";

/**
 * Wraps a model so that the tokens it and its base read and generate are counted. `tokens` returns their number so far; null if
 * the engine reported none, or something that is not a count.
 *
 * @param onCall Called before each call of the model. If it throws, the call rejects.
 * @param onSign Called when a call shows that it makes progress, with the tokens that it counts, and when it ends.
 */
export function countTokens(
  model: EvaluableModel,
  onCall: () => void = () => undefined,
  onSign: (tokens?: number) => void = () => undefined,
) {
  let tokens: number | null = null;
  const counted = (options: CallOptions): CallOptions => {
    onCall();
    return {
      ...options,
      countTokens(more) {
        onSign(more);
        tokens = (tokens ?? 0) + more;
        options.countTokens?.(more);
      },
      beforeRequest() {
        onSign();
        return options.beforeRequest?.() ?? (() => onSign());
      },
    };
  };
  return {
    model: wrapModel(model, (ask) => async (requests, options) => {
      try {
        return await ask(requests, counted(options));
      } finally {
        onSign();
      }
    }),
    tokens: () => (isCount(tokens) ? tokens : null),
  };
}
