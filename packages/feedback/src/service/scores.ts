import {
  PeriodicEvalError,
  type EvaluableModel,
  type Json,
  type LogLikelihoodRequest,
  type Prompt,
} from "@periodic-eval/core";
import { encodePair } from "@periodic-eval/core/evaluations";
import { mapInTurns } from "@periodic-eval/core/internal";
import { entropiesOf } from "../metrics/collapse-reference.ts";
import { promptOf, textOf } from "./answers.ts";
import { checkLength } from "./prompt-length.ts";
import type { ScoredBody } from "./wire.ts";

/** Computes the log p of completions in one call of the model. Returns one result per completion, in order. */
export async function score(
  model: EvaluableModel,
  bodies: readonly ScoredBody[],
  signal: AbortSignal,
): Promise<readonly { readonly [field: string]: Json }[]> {
  for (const { messages, prompt = "", completion = "", chat_template_kwargs: kwargs } of bodies) {
    checkLength(model, messages ? "messages" : "prompt", messages ? textOf(messages, kwargs) : prompt);
    checkLength(model, "completion", completion);
  }
  const tokenizer = model.tokenizer!;
  const turns = { signal, where: "/v1/score" };
  const requests = bodies.map((body): LogLikelihoodRequest => ({
    context: contextOf(body),
    continuation: body.completion ?? { ids: body.completion_token_ids! },
  }));
  const pairs = await mapInTurns(requests, turns, (request) => encodePair(tokenizer, request));
  const scores = await model.logLikelihoods!(requests, { signal });
  return mapInTurns(scores, turns, ({ sumNats, tokenNats, isGreedy, tokenIsGreedy, truncatedTokens }, at) => {
    const { continuation: ids } = pairs[at]!;
    return {
      logprob_sum: finite(sumNats, "Σ log p"),
      logprobs: [...tokenNats],
      tokens: ids.map((id) => tokenizer.decode([id])),
      token_ids: [...ids],
      n: tokenNats.length,
      is_greedy: isGreedy,
      token_is_greedy: tokenIsGreedy == null ? null : [...tokenIsGreedy],
      truncated_tokens: truncatedTokens,
    };
  });
}

function contextOf({
  messages,
  prompt,
  prompt_token_ids: ids,
  chat_template_kwargs: kwargs,
}: ScoredBody): Prompt {
  if (messages !== undefined) return promptOf(messages, kwargs ?? null);
  return prompt === undefined ? { ids: ids! } : { text: prompt };
}

/** Returns, for each text, the entropy of the next token in nats after each token except the last. */
export async function entropies(
  model: EvaluableModel,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<Json> {
  const found: number[][] = [];
  for (const text of texts) checkLength(model, "entropies_of", text);
  for (const text of texts) {
    const known = await entropiesOf(model, text, { signal });
    if (known.value === null)
      throw new PeriodicEvalError({
        code: "model",
        where: "entropies_of",
        got: known.reason,
        expected: "a model that returns its distribution",
        fix: "Remove entropies_of.",
      });
    found.push(known.value.map((entropy) => finite(entropy, "an entropy")));
  }
  return found;
}

/** Requires a finite number: JSON has no NaN, and null would mean unknown. */
function finite(value: number, what: string): number {
  if (Number.isFinite(value)) return value;
  throw new PeriodicEvalError({
    code: "model",
    where: "/v1/score",
    got: `${what} of ${value}`,
    expected: "a finite number",
    fix: "Check the loss: the weights are probably NaN or infinite.",
  });
}
