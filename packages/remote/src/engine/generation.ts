import {
  bulkTokenizer,
  type CallOptions,
  type Completion,
  type GenerateRequest,
  type Sampling,
  type Tokenizer,
  type TopToken,
} from "@periodic-eval/core";
import {
  acceptToken,
  beginWriting,
  completionOf,
  fitRequests,
  isWritten,
  type Writing,
} from "@periodic-eval/tokenizers";
import { arrayOrNull, at, totalTokens } from "../http/reply-fields.ts";
import { trackCall } from "../http/track-requests.ts";
import { completionOf as chatCompletionOf, seedNumber } from "../models/openai.ts";
import { chatOf } from "../models/chat-message.ts";
import type { Target } from "./pool.ts";
import { inOrder } from "./scoring.ts";
import {
  serverError,
  checkPromptIds,
  choicesOf,
  completionIds,
  logProbOf,
  neutralSampling,
  topLogProbs,
} from "./wire.ts";

/** Samples completions of prompts that this library renders and encodes, with the server's sampler. */
export const generate = (
  target: Target,
  tokenizer: Tokenizer,
  requests: readonly GenerateRequest[],
  options: CallOptions,
): Promise<readonly Completion[]> =>
  trackCall(options, async ({ signal, countTokens, send }) => {
    // A prompt and its completion share the context length.
    const fitted = await fitRequests(bulkTokenizer(tokenizer), requests, target.contextLimit - 1, { signal });
    return inOrder(target, fitted.map(beginWriting), async (writing) => {
      const body = generateBody(target.name, tokenizer, writing);
      const reply = await send(() =>
        target.run(signal, ({ service }) => service.ask("v1/completions", body, signal)),
      );
      const completion = readCompletion(target, tokenizer, writing, reply);
      countTokens?.(writing.prompt.length + writing.ids.length);
      return completion;
    });
  });

export const generateBody = (
  model: string,
  { stopIds }: Pick<Tokenizer, "stopIds">,
  { prompt, sampling, room }: Pick<Writing, "prompt" | "sampling" | "room">,
) => ({
  model,
  prompt,
  max_tokens: room,
  ...neutralSampling,
  ...samplingFields(sampling),
  stop_token_ids: stopIds,
  // The end-of-text of the server's configuration may be another one.
  ignore_eos: true,
  // Stop strings may contain special tokens.
  skip_special_tokens: false,
  logprobs: sampling.topTokens ?? 0,
  return_tokens_as_token_ids: true,
  return_token_ids: true,
});

const samplingFields = ({ temperature, topP, topK, stop, seed }: Sampling) => ({
  temperature,
  ...(topP !== undefined && { top_p: topP }),
  ...(topK !== undefined && { top_k: topK }),
  ...(stop !== undefined && { stop }),
  ...(temperature > 0 && { seed: seedNumber(seed) }),
});

/** Repeats a completion token by token, so that it ends where one of a model in memory does. */
function readCompletion(target: Target, tokenizer: Tokenizer, writing: Writing, reply: unknown): Completion {
  const { where, name, isAdapter, hasTokenNats } = target;
  const [choice] = choicesOf(reply, { count: 1, model: name, isAdapter }, where);
  checkPromptIds(choice, writing.prompt, where);
  const ids = completionIds(choice);
  if (ids === null)
    throw serverError({
      where,
      got: "a completion without token_ids",
      expected: "the ids of its tokens",
      fix: "Use a server that returns them, such as vLLM.",
    });
  const nats = hasTokenNats ? tokenNats(choice, ids.length, where) : null;
  ids.forEach((token, index) => {
    if (!isWritten(writing)) acceptToken(tokenizer, writing, { token, nats: nats?.[index] ?? 0 });
  });
  const ending = at(choice, "finish_reason");
  checkEnding(where, writing, ending);
  const { topTokens } = writing.sampling;
  const completion = completionOf(tokenizer, writing);
  return {
    ...completion,
    ...(nats === null && { tokenNats: null }),
    ...(topTokens !== undefined && {
      topNats: ofEachToken(topLogProbs(choice, where), ids.length, where)
        .slice(0, writing.ids.length)
        .map((top) => mostLikely(where, tokenizer, top, topTokens)),
    }),
    ...(ending === "stop" && { finish: "stop" as const }),
  };
}

/** Returns the log-probabilities of the tokens of a completion. */
export const tokenNats = (choice: unknown, count: number, where: string): readonly number[] =>
  ofEachToken(arrayOrNull(at(choice, "logprobs", "token_logprobs")), count, where).map((nats) =>
    logProbOf(nats, where),
  );

/** @throws PeriodicEvalError `model` for a list that does not fit the tokens: its numbers may belong to others. */
function ofEachToken<T>(list: readonly T[] | null, count: number, where: string): readonly T[] {
  if (list?.length === count) return list;
  throw serverError({
    where,
    got: `${list?.length ?? "no"} log-probabilities of ${count} tokens`,
    expected: "one for each token of the completion",
    fix: "Use a server that returns them, such as vLLM.",
  });
}

function mostLikely(
  where: string,
  tokenizer: Tokenizer,
  top: ReadonlyMap<number, number>,
  count: number,
): readonly TopToken[] {
  if (top.size < count)
    throw serverError({
      where,
      got: `${top.size} log-probabilities at a position`,
      expected: `the ${count} highest`,
      fix: "Raise --max-logprobs, and send no requests with logprob_token_ids to this server meanwhile.",
    });
  return [...top]
    .sort(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([id, nats]) => ({ text: tokenizer.decode([id]), nats }));
}

/** @throws PeriodicEvalError `model` for a completion that was cut before `maxNewTokens` and the end of the context. */
function checkEnding(where: string, writing: Writing, ending: unknown): void {
  if (isWritten(writing) || ending === "stop") return;
  throw cutError(where, writing.ids.length, writing.room, ending);
}

const cutError = (where: string, count: number | null, room: number, ending: unknown) =>
  serverError({
    where,
    got: `a completion of ${count ?? "an unknown number of"} tokens with finish_reason ${JSON.stringify(ending ?? null)}`,
    expected: `${room} tokens, or an end by a stop token or a stop string`,
    fix: "Raise --max-model-len and the limits of the server or of a gateway before it: one of them cut max_tokens.",
  });

/** Samples answers to chats that the server renders: for a model without its tokenizer. */
export const generateChats = (
  target: Target,
  requests: readonly GenerateRequest[],
  options: CallOptions,
): Promise<readonly Completion[]> =>
  trackCall(options, ({ signal, countTokens, send }) =>
    inOrder(target, requests, async (request) => {
      const body = chatBody(target, request);
      const reply = await send(() =>
        target.run(signal, ({ service }) => service.ask("v1/chat/completions", body, signal)),
      );
      const { topTokens, maxNewTokens } = request.sampling;
      const completion = chatCompletionOf(reply, target.where, {
        wantsTop: topTokens !== undefined,
        maxNewTokens,
      });
      checkLength(target, completion, maxNewTokens);
      const tokens = totalTokens(completion);
      if (tokens !== null) countTokens?.(tokens);
      // The server's tokens are unknown here, so they are not those of this model's tokenizer.
      return target.hasTokenNats ? completion : { ...completion, tokenNats: null };
    }),
  );

function chatBody({ where, name }: Target, { prompt, sampling }: GenerateRequest) {
  const { messages, templateKwargs } = chatOf(where, prompt);
  // A system message is the first one.
  const continues = messages.at(-1)?.role === "assistant";
  return {
    model: name,
    messages,
    max_tokens: sampling.maxNewTokens,
    top_p: 1,
    ...samplingFields(sampling),
    ...(sampling.topTokens !== undefined && { logprobs: true, top_logprobs: sampling.topTokens }),
    ...(templateKwargs !== null && { chat_template_kwargs: templateKwargs }),
    ...(continues && { continue_final_message: true, add_generation_prompt: false }),
  };
}

/** @throws PeriodicEvalError `model` for an answer that was cut before `maxNewTokens` and the end of the context. */
function checkLength(
  { where, contextLimit }: Target,
  { finish, usage }: Completion,
  maxNewTokens: number,
): void {
  if (finish !== "length") return;
  const { inputTokens = null, outputTokens = null } = usage ?? {};
  if (outputTokens !== null && outputTokens >= maxNewTokens) return;
  if (inputTokens !== null && outputTokens !== null && inputTokens + outputTokens >= contextLimit) return;
  throw cutError(where, outputTokens, maxNewTokens, "length");
}
