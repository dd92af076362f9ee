import {
  PeriodicEvalError,
  type Completion,
  type EvaluableModel,
  type TopToken,
  type ModelWith,
} from "@periodic-eval/core";
import { hashText } from "@periodic-eval/core/random";
import { isCount } from "@periodic-eval/core/internal";
import { at, bodyOf, isText, listOf, usageOf } from "./reply-fields.ts";
import {
  clientOptions,
  noTemplate,
  servedModel,
  type Provider,
  type ServedModelOptions,
} from "./served-model.ts";

/**
 * A model behind OpenAI's Chat Completions API, OpenAI's own or any server that speaks it (vLLM, llama.cpp, Ollama, …:
 * give `baseUrl`, or OPENAI_BASE_URL). Through the official SDK `openai`, an optional peer. The key is read from
 * OPENAI_API_KEY or `apiKeyEnv`; a server of one's own may do without.
 *
 * A prompt's `templateKwargs` are sent as `chat_template_kwargs`, as vLLM, SGLang and llama.cpp take them; OpenAI's own API
 * takes none, and they are refused.
 *
 * @throws PeriodicEvalError `config` for wrong options or no key; `model`, from `generate`, with the server's status and
 *   reason once all attempts have failed.
 */
export function openAiCompatible(options: ServedModelOptions): EvaluableModel & ModelWith<"generate"> {
  return servedModel(openAi, options);
}

const openAi: Provider = {
  name: "openAiCompatible",
  engine: "openai",
  defaultUrl: "https://api.openai.com/v1",
  urlEnv: "OPENAI_BASE_URL",
  keyEnv: "OPENAI_API_KEY",
  install: "openai",
  async connect(connection) {
    const { OpenAI } = await import("openai");
    const { model, isOwnServer, body } = connection;
    const client = new OpenAI(clientOptions(connection));
    return async ({ messages, templateKwargs }, sampling, signal) => {
      const where = `openAiCompatible("${model}")`;
      if (templateKwargs !== null && !isOwnServer) throw noTemplate(where, templateKwargs, "OpenAI's API");
      if (templateKwargs !== null && "chat_template_kwargs" in body) throw bothKwargs(where);
      const { maxNewTokens, temperature, topP, topK, stop, topTokens, seed } = sampling;
      const fields = {
        model,
        messages,
        // Servers of others often know only the older name; OpenAI's newer models only the newer.
        [isOwnServer ? "max_tokens" : "max_completion_tokens"]: maxNewTokens,
        temperature,
        top_p: topP,
        top_k: topK,
        stop,
        ...(temperature > 0 && { seed: seedNumber(seed) }),
        ...(topTokens !== undefined && { logprobs: true, top_logprobs: topTokens }),
        chat_template_kwargs: templateKwargs,
      };
      const reply: unknown = await client.post("/chat/completions", { body: bodyOf(fields, body), signal });
      return completionOf(reply, where, { wantsTop: topTokens !== undefined });
    };
  },
};

/** What goes before ours would take the evaluation's place unseen. */
const bothKwargs = (where: string) =>
  new PeriodicEvalError({
    code: "config",
    where,
    got: "chat_template_kwargs in the body, and an evaluation with chatTemplate.kwargs",
    expected: "one of them",
    fix: "Take them out of the body: what the evaluation sets stands in its snapshots.",
  });

/** 31 bits of the seed's hash. */
export const seedNumber = (seed: string): number => Number.parseInt(hashText(seed).slice(-8), 16) >>> 1;

/**
 * A choice of a chat completion, the first by default.
 *
 * @throws PeriodicEvalError `model` for a reply of another form.
 */
export function completionOf(
  reply: unknown,
  where: string,
  { wantsTop = false, place = 0 }: { readonly wantsTop?: boolean; readonly place?: number } = {},
): Completion {
  const choice = at(reply, "choices", place);
  const content = at(choice, "message", "content");
  const refusal = at(choice, "message", "refusal");
  const text = content ?? refusal ?? (at(choice, "finish_reason") === "content_filter" ? "" : null);
  if (!isText(text)) {
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: `a reply without choices[${place}].message.content`,
      expected: "a chat completion",
      fix: "See that the base URL is that of a Chat Completions API.",
    });
  }
  const tokens = listOf(at(choice, "logprobs", "content"));
  const ids = listOf(at(choice, "token_ids"));
  const model = at(reply, "model");
  return {
    text,
    // As vLLM names them, of which `return_token_ids` asked for them.
    ids: ids?.every((id): id is number => isCount(id)) ? ids : null,
    tokenNats: tokens && tokens.map((token) => Number(at(token, "logprob"))),
    ...(wantsTop && { topNats: tokens && tokens.map((token) => topOf(at(token, "top_logprobs"))) }),
    finish: at(choice, "finish_reason") === "length" ? "length" : "stop",
    ...(isText(model) && { model }),
    ...usageOf(at(reply, "usage", "prompt_tokens"), at(reply, "usage", "completion_tokens")),
  };
}

function topOf(list: unknown): readonly TopToken[] {
  return (listOf(list) ?? [])
    .flatMap((entry) => {
      const [text, nats] = [at(entry, "token"), at(entry, "logprob")];
      return isText(text) && typeof nats === "number" ? [{ text, nats }] : [];
    })
    .sort((a, b) => b.nats - a.nats);
}
