import type { CallOptions, Completion, GenerateRequest } from "@periodic-eval/core";
import { totalTokens } from "../http/reply-fields.ts";
import { trackCall } from "../http/track-requests.ts";
import { completionOf } from "../models/openai.ts";
import { chatOf } from "../models/served-chat.ts";
import { cutError, samplingFields } from "./generation.ts";
import { inOrder } from "./scoring.ts";
import type { Target } from "./target.ts";

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
      const completion = completionOf(reply, target.where, {
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
