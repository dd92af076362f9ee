import { PeriodicEvalError, type EvaluableModel, type ModelWith } from "@periodic-eval/core";
import { at, bodyOf, isText, listOf, usageOf } from "./reply-fields.ts";
import {
  clientOptions,
  noTemplate,
  servedModel,
  type Provider,
  type ServedModelOptions,
} from "./served-model.ts";

/**
 * A model behind Anthropic's Messages API, through the official SDK `@anthropic-ai/sdk`, an optional peer. The key is read
 * from ANTHROPIC_API_KEY or `apiKeyEnv`. The API tells no log-probabilities: `Sampling.topTokens` is refused; and it has no
 * chat template: so are a prompt's `templateKwargs`.
 *
 * @throws PeriodicEvalError `config` for wrong options or no key; `model`, from `generate`, with the server's status and
 *   reason once all attempts have failed.
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
  install: "@anthropic-ai/sdk",
  async connect(connection) {
    const { model, body } = connection;
    const { Anthropic } = await import("@anthropic-ai/sdk");
    const client = new Anthropic(clientOptions(connection));
    return async ({ messages, templateKwargs }, sampling, signal) => {
      const where = `anthropicModel("${model}")`;
      if (templateKwargs !== null) throw noTemplate(where, templateKwargs, "Anthropic's API");
      const { maxNewTokens, temperature, topP, topK, stop, topTokens } = sampling;
      if (topTokens !== undefined) {
        throw new PeriodicEvalError({
          code: "model",
          where,
          got: `topTokens ${topTokens}`,
          expected: "none: Anthropic's API tells no log-probabilities",
          fix: 'Judge by method "json", or choose another model.',
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
      const reply: unknown = await client.post("/v1/messages", { body: bodyOf(fields, body), signal });
      const blocks = listOf(at(reply, "content"));
      if (blocks === null) {
        throw new PeriodicEvalError({
          code: "model",
          where,
          got: "a reply without a list of content",
          expected: "a message",
          fix: "See that the base URL is that of a Messages API.",
        });
      }
      const named = at(reply, "model");
      return {
        text: blocks
          .map((block) => at(block, "text"))
          .filter(isText)
          .join(""),
        ids: null,
        tokenNats: null,
        finish: at(reply, "stop_reason") === "max_tokens" ? "length" : "stop",
        ...(isText(named) && { model: named }),
        ...usageOf(at(reply, "usage", "input_tokens"), at(reply, "usage", "output_tokens")),
      };
    };
  },
};
