import { PeriodicEvalError, type EvaluableModel, type ModelWith } from "@periodic-eval/core";
import { arrayOrNull, at, checkNoError, errorIn, isString, usageOf } from "../http/reply-fields.ts";
import { maskJson } from "../http/secrets.ts";
import { finishOf, templateKwargsError } from "./chat-message.ts";
import {
  clientOptions,
  requestBody,
  type Provider,
  type ServedModelOptions,
  servedModel,
} from "./served-model.ts";

/**
 * Returns a model behind Anthropic's Messages API. It needs the official SDK `@anthropic-ai/sdk`, an optional peer dependency,
 * and reads the API key from ANTHROPIC_API_KEY or `apiKeyEnv`. The API returns no log-probabilities and has no chat template
 * variables, so `Sampling.topTokens` and a prompt's `templateKwargs` are errors.
 *
 * @throws PeriodicEvalError `config` for a wrong option or a missing key. `generate` throws `model` with the server's status and
 *   message if all attempts failed.
 */
export function anthropicModel(options: ServedModelOptions): EvaluableModel & ModelWith<"generate"> {
  return servedModel(anthropic, options);
}

const anthropic: Provider = {
  name: "anthropicModel",
  engine: "anthropic",
  defaultUrl: "https://api.anthropic.com",
  urlEnv: "ANTHROPIC_BASE_URL",
  keyEnv: "ANTHROPIC_API_KEY",
  packageName: "@anthropic-ai/sdk",
  async connect(connection) {
    const { model, body, key } = connection;
    const { Anthropic } = await import("@anthropic-ai/sdk");
    const client = new Anthropic(clientOptions(connection));
    return async ({ messages, templateKwargs }, sampling, signal) => {
      const where = `anthropicModel("${model}")`;
      if (templateKwargs !== null) throw templateKwargsError(where, templateKwargs, "Anthropic's API");
      const { maxNewTokens, temperature, topP, topK, stop, topTokens } = sampling;
      if (topTokens !== undefined) {
        throw new PeriodicEvalError({
          code: "model",
          where,
          got: `topTokens ${topTokens}`,
          expected: "none, because Anthropic's API returns no log-probabilities",
          fix: 'Judge with method "json", or choose another model.',
        });
      }
      const system = messages.filter(({ role }) => role === "system").map(({ content }) => content);
      const fields = {
        model,
        messages: messages.filter(({ role }) => role !== "system"),
        system: system.join("\n\n") || undefined,
        max_tokens: maxNewTokens,
        temperature,
        top_p: topP,
        top_k: topK,
        stop_sequences: stop,
      };
      const sent: unknown = await client.post("/v1/messages", { body: requestBody(fields, body), signal });
      const reply = maskJson(sent, key);
      checkNoError(where, errorIn(reply, "content"));
      const blocks = arrayOrNull(at(reply, "content"));
      if (blocks === null) {
        throw new PeriodicEvalError({
          code: "model",
          where,
          got: "a reply without an array `content`",
          expected: "a reply of the Messages API",
          fix: "Check that the base URL belongs to a Messages API.",
        });
      }
      const servedBy = at(reply, "model");
      return {
        text: blocks
          .map((block) => at(block, "text"))
          .filter(isString)
          .join(""),
        ids: null,
        tokenNats: null,
        finish: finishOf(where, at(reply, "stop_reason"), at(reply, "usage", "output_tokens"), maxNewTokens),
        ...(isString(servedBy) && { model: servedBy }),
        ...usageOf(reply, "input_tokens", "output_tokens"),
      };
    };
  },
};
