import { randomUUID } from "node:crypto";
import type {
  Completion,
  EvaluableModel,
  GenerateRequest,
  Json,
  Message,
  Prompt,
  TemplateKwargs,
  Tokenizer,
} from "@periodic-eval/core";
import { renderPrompt } from "@periodic-eval/core/evaluations";
import { mapInTurns } from "@periodic-eval/core/internal";
import { checkLength } from "./prompt-length.ts";
import { refused } from "./refusals.ts";
import type { ChatBatchBody, ChatBody } from "./wire.ts";

/** Default of `max_tokens`. Without it, a model that does not end its answers would fill its context. */
const defaultMaxTokens = 256;

/** Answers one or more conversations in OpenAI's format, with one choice per conversation, in order. */
export async function answer(
  model: EvaluableModel,
  body: ChatBody | ChatBatchBody,
  { signal, now }: { readonly signal: AbortSignal; readonly now: Date },
): Promise<Json> {
  const requests = requestsOf(body);
  for (const { prompt } of requests)
    if ("messages" in prompt)
      checkLength(model, "messages", textOf(prompt.messages, body.chat_template_kwargs));
  const tokenizer = model.tokenizer!;
  const completions = await model.generate!(requests, { signal });
  const turns = { signal, where: "/v1/chat/completions" };
  const answers = await mapInTurns(completions, turns, (completion, at) => ({
    choice: { index: at, ...choiceOf(completion, body, tokenizer) },
    promptTokens: renderPrompt(tokenizer, requests[at]!.prompt).ids?.length ?? 0,
    completionTokens: completion.ids?.length ?? 0,
  }));
  const promptTokens = sum(answers.map((one) => one.promptTokens));
  const completionTokens = sum(answers.map((one) => one.completionTokens));
  return {
    id: `chatcmpl-${randomUUID()}`,
    object: "chat.completion",
    created: Math.floor(now.getTime() / 1000),
    model: body.model,
    choices: answers.map(({ choice }) => choice),
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      total_tokens: promptTokens + completionTokens,
    },
  };
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

function requestsOf(body: ChatBody | ChatBatchBody): readonly GenerateRequest[] {
  const { temperature, top_p: topP, top_k: topK, stop, chat_template_kwargs: kwargs } = body;
  if (body.max_tokens != null && body.max_completion_tokens != null)
    throw refused(400, "invalid_value", {
      where: "max_tokens",
      got: "both max_tokens and max_completion_tokens",
      expected: "one of the two",
      fix: "Remove one: they mean the same.",
    });
  const sampling = {
    maxNewTokens: body.max_completion_tokens ?? body.max_tokens ?? defaultMaxTokens,
    temperature: temperature ?? 1,
    ...(topP != null && { topP }),
    ...(topK != null && { topK }),
    ...(stop != null && { stop: typeof stop === "string" ? [stop] : stop }),
  };
  const isBatch = Array.isArray(body.messages[0]);
  const conversations = (isBatch ? body.messages : [body.messages]) as readonly (readonly Message[])[];
  const seeds = "seeds" in body ? body.seeds : null;
  return conversations.map((messages, at) => ({
    prompt: promptOf(messages, kwargs ?? null),
    sampling: { ...sampling, seed: String(seeds?.[at] ?? body.seed ?? randomUUID()) },
  }));
}

/** Returns what a chat template renders, about as long as its result: a template adds some characters to each message. */
export const textOf = (messages: readonly Message[], kwargs: unknown): string =>
  JSON.stringify([messages, kwargs]);

export const promptOf = (messages: readonly Message[], kwargs: TemplateKwargs | null): Prompt => ({
  messages,
  ...(kwargs !== null && { templateKwargs: kwargs }),
});

function choiceOf(
  { text, ids, tokenNats, finish }: Completion,
  { logprobs, return_token_ids: returnsIds }: Pick<ChatBody, "logprobs" | "return_token_ids">,
  tokenizer: Tokenizer,
) {
  const contentOf = (id: number, at: number) => {
    const token = tokenizer.decode([id]);
    // A token that is only part of a character decodes to U+FFFD, whose bytes differ from the token's.
    const bytes = token.includes("\uFFFD") ? null : [...Buffer.from(token)];
    return { token, logprob: tokenNats![at]!, bytes, top_logprobs: [] };
  };
  return {
    message: { role: "assistant", content: text, refusal: null },
    logprobs: logprobs === true ? { content: (ids ?? []).map(contentOf), refusal: null } : null,
    finish_reason: finish,
    ...(returnsIds === true && { token_ids: [...(ids ?? [])] }),
  };
}
