import {
  PeriodicEvalError,
  type Completion,
  type EvaluableModel,
  type ModelWith,
  type TopToken,
} from "@periodic-eval/core";
import { configError, isCount, isNats, natsTolerance, quoteValue } from "@periodic-eval/contracts/options";
import { hashText } from "@periodic-eval/core/random";
import { arrayOrNull, at, checkNoError, errorIn, isString, usageOf } from "../http/reply-fields.ts";
import { maskJson } from "../http/secrets.ts";
import { finishOf, messageText, templateKwargsError } from "./chat-message.ts";
import {
  clientOptions,
  requestBody,
  type Provider,
  type ServedModelOptions,
  servedModel,
} from "./served-model.ts";

/**
 * Returns a model behind the Chat Completions API of OpenAI, or of any compatible server (vLLM, llama.cpp, Ollama) at `baseUrl`
 * or OPENAI_BASE_URL. It needs the official SDK `openai`, an optional peer dependency, and reads the API key from
 * OPENAI_API_KEY or `apiKeyEnv`; compatible servers may need none.
 *
 * A prompt's `templateKwargs` are sent as `chat_template_kwargs`, which vLLM, SGLang and llama.cpp accept. OpenAI's API does not
 * accept them, so there they are an error.
 *
 * @throws PeriodicEvalError `config` for a wrong option or a missing key. `generate` throws `model` with the server's status and
 *   message if all attempts failed.
 */
export function chatCompletionsModel(options: ServedModelOptions): EvaluableModel & ModelWith<"generate"> {
  return servedModel(openAi, options);
}

const openAi: Provider = {
  name: "chatCompletionsModel",
  engine: "openai",
  defaultUrl: "https://api.openai.com/v1",
  urlEnv: "OPENAI_BASE_URL",
  keyEnv: "OPENAI_API_KEY",
  packageName: "openai",
  async connect(connection) {
    const { OpenAI } = await import("openai");
    const { model, isOtherHost, body, key } = connection;
    const client = new OpenAI(clientOptions(connection));
    return async ({ messages, templateKwargs }, sampling, signal) => {
      const where = `chatCompletionsModel("${model}")`;
      if (templateKwargs !== null && !isOtherHost)
        throw templateKwargsError(where, templateKwargs, "OpenAI's API");
      if (templateKwargs !== null && "chat_template_kwargs" in body) throw duplicateKwargs();
      const { maxNewTokens, temperature, topP, topK, stop, topTokens, seed } = sampling;
      const fields = {
        model,
        messages,
        // Compatible servers often know only the older name; OpenAI's newer models accept only the newer one.
        [isOtherHost ? "max_tokens" : "max_completion_tokens"]: maxNewTokens,
        temperature,
        top_p: topP,
        top_k: topK,
        stop,
        ...(temperature > 0 && { seed: seedNumber(seed) }),
        ...(topTokens !== undefined && { logprobs: true, top_logprobs: topTokens }),
        chat_template_kwargs: templateKwargs,
      };
      const reply: unknown = await client.post("/chat/completions", {
        body: requestBody(fields, body),
        signal,
      });
      const completion = completionOf(maskJson(reply, key), where, {
        wantsTop: topTokens !== undefined,
        maxNewTokens,
      });
      if (!completion.topNats) return completion;
      // A verdict keeps them, and some servers send the whole vocabulary.
      return { ...completion, topNats: completion.topNats.map((top) => top.slice(0, topTokens)) };
    };
  },
};

/** Creates the error for template variables that the option `body` would silently override. */
const duplicateKwargs = () =>
  configError({
    where: "chatCompletionsModel options",
    path: ["body", "chat_template_kwargs"],
    got: "chat_template_kwargs, while the evaluation sets chatTemplate.kwargs",
    expected: "one of the two",
    fix: "Remove chat_template_kwargs from the body: snapshots record the evaluation's variables.",
  });

/** Returns the `seed` for a server, a 31-bit integer: the upper 31 of the last 32 bits of the seed's hash. */
export const seedNumber = (seed: string): number => Number.parseInt(hashText(seed).slice(-8), 16) >>> 1;

/**
 * Reads one choice of a chat completion.
 *
 * @param index The number of the choice, from 0: its field `index` if the choices have the numbers 0 to n−1, otherwise its place in
 *   the array. Default 0.
 * @param maxNewTokens The requested length, for a reply without a finish reason.
 * @throws PeriodicEvalError `model` for a reply of another shape.
 */
export function completionOf(
  reply: unknown,
  where: string,
  { wantsTop = false, maxNewTokens }: { readonly wantsTop?: boolean; readonly maxNewTokens?: number } = {},
): Completion {
  const choices = arrayOrNull(at(reply, "choices")) ?? [];
  const numbers = choices.map((choice) => at(choice, "index"));
  const distinct = new Set(numbers);
  const isNumbered = choices.every((_, position) => distinct.has(position));
  const choice = choices[isNumbered ? numbers.indexOf(0) : 0];
  checkNoError(where, at(choice, "error") ?? errorIn(reply, "choices"));
  const reason = at(choice, "finish_reason");
  const text = messageText(where, at(choice, "message")) ?? (reason === "content_filter" ? "" : null);
  if (text === null) {
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: "a reply without choices[0].message.content",
      expected: "a chat completion",
      fix: "Check that the base URL belongs to a Chat Completions API.",
    });
  }
  const tokens = arrayOrNull(at(choice, "logprobs", "content"));
  const nats = tokens?.map((token) => at(token, "logprob"));
  const ids = arrayOrNull(at(choice, "token_ids"));
  const model = at(reply, "model");
  return {
    text,
    // vLLM returns `token_ids` if the request has `return_token_ids`.
    ids: ids?.every((id): id is number => isCount(id)) ? ids : null,
    tokenNats: nats?.every(isNats) ? nats : null,
    ...(wantsTop && { topNats: tokens && tokens.map((token) => topOf(where, at(token, "top_logprobs"))) }),
    finish: finishOf(where, reason, at(reply, "usage", "completion_tokens"), maxNewTokens),
    ...(isString(model) && { model }),
    ...usageOf(reply, "prompt_tokens", "completion_tokens"),
  };
}

/** @throws PeriodicEvalError `model` for values that cannot be log-probabilities. Dropping them would distort the distribution. */
function topOf(where: string, list: unknown): readonly TopToken[] {
  const tokens = (arrayOrNull(list) ?? []).flatMap((entry) => {
    const [text, nats] = [at(entry, "token"), at(entry, "logprob")];
    // Some servers send the log of 0 as null.
    if (nats === null) return [];
    if (!isString(text) || !isNats(nats)) throw wrongTop(where, `a token with logprob ${quoteValue(nats)}`);
    return [{ text, nats }];
  });
  const mass = tokens.reduce((sum, { nats }) => sum + Math.exp(nats), 0);
  if (mass > 1 + natsTolerance) throw wrongTop(where, `tokens with a probability of ${mass} together`);
  return tokens.sort((a, b) => b.nats - a.nats);
}

const wrongTop = (where: string, got: string): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "model",
    where,
    got,
    expected: "natural logarithms of probabilities, at most 0",
    fix: 'Judge with method "json", or use a server that returns log-probabilities.',
  });
