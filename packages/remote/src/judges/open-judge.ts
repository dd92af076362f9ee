import {
  judgeGrader,
  PeriodicEvalError,
  type EvaluableModel,
  type JudgeGrader,
  type JudgeOptions,
  type ModelWith,
} from "@periodic-eval/core";
import { judgeNames, judgeSpec, parseLocalJudge } from "@periodic-eval/contracts/options";
import { nearest } from "@periodic-eval/contracts/options";
import { environmentValue } from "../http/secrets.ts";
import { anthropicModel } from "../models/anthropic.ts";
import { chatCompletionsModel } from "../models/openai.ts";
import type { ServedModelOptions } from "../models/served-model.ts";

export type OpenJudgeOptions = Omit<JudgeOptions, "model"> & {
  /** Options of the model's client. Its `timeoutSeconds` limits one attempt; the judge's limits a call with all retries. */
  readonly client?: Omit<ServedModelOptions, "model">;
};

/**
 * Opens a judge by name.
 *
 * @param spec `openai:MODEL`, `anthropic:MODEL`, or only a model name. A name that begins with `claude-` selects Anthropic's
 *   API, any other name an OpenAI-compatible server (OPENAI_BASE_URL). Default: the environment variable JUDGE_MODEL. Judges that run
 *   in this process are opened by `openLocalJudge` of @periodic-eval/models.
 * @throws PeriodicEvalError `config` if neither names a model, for an unknown prefix (`word:rest`; a model of a server whose name
 *   has a colon is `openai:word:rest`), for a wrong option, or for a missing API key.
 */
export async function openJudge(spec?: string | null, options: OpenJudgeOptions = {}): Promise<JudgeGrader> {
  const { client, ...judge } = options;
  return judgeGrader({ ...judge, model: judgeModel(spec, client) });
}

/** Returns the model that `openJudge` would use. */
export function judgeModel(
  spec?: string | null,
  client: Omit<ServedModelOptions, "model"> = {},
): EvaluableModel & ModelWith<"generate"> {
  const { text, provider, model } = readSpec(spec);
  if (parseLocalJudge(text) !== null)
    throw judgeError(
      JSON.stringify(text),
      "a judge behind an API: openai:MODEL, anthropic:MODEL or a model name",
      "Use `await openLocalJudge(name)` of @periodic-eval/models: this model runs in your process.",
    );
  if (model === "") {
    throw judgeError(
      text === "" ? "no model" : JSON.stringify(text),
      judgeNames,
      "Set judge_model in the configuration, or set the environment variable JUDGE_MODEL.",
    );
  }
  const isAnthropic = provider === "anthropic" || (provider === undefined && model.startsWith("claude-"));
  const isForServer = client.baseUrl !== undefined || environmentValue("OPENAI_BASE_URL") !== null;
  if (provider === undefined && !isAnthropic && !isForServer) {
    // OpenAI's own names have no slash: such a name is a server's, or a model of the hub.
    if (/^[\w.-]+\/[\w.-]+$/.test(model))
      throw judgeError(
        JSON.stringify(text),
        judgeNames,
        `Write hf:${model} for a model of the hub that runs in this process, or set OPENAI_BASE_URL for a server.`,
      );
    const { apiKeyEnv: key = "OPENAI_API_KEY" } = client;
    if (key !== null && environmentValue(key) === null)
      throw judgeError(
        `${JSON.stringify(text)}, a model name without a provider, and ${key} is not set`,
        judgeNames,
        `Name another judge, or set ${key}.`,
      );
  }
  return (isAnthropic ? anthropicModel : chatCompletionsModel)({ ...client, model });
}

const judgeError = (got: string, expected: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where: "judge model", path: ["judge_model"], got, expected, fix });

/** @throws PeriodicEvalError `config` for `word:rest`, unless it is the id of a fine-tuned model of OpenAI. */
function checkPrefix(name: string): void {
  const [, word, rest] = /^([^:/]+):(.*)$/s.exec(name) ?? [];
  if (word === undefined || rest === undefined || word === "ft") return;
  // A short word such as "phi" resembles "hf".
  const prefixes = [
    "openai",
    "anthropic",
    "folder",
    "transformers",
    "rule",
    ...(rest.includes("/") ? ["hf"] : []),
  ];
  const close = nearest(word, prefixes);
  throw judgeError(
    JSON.stringify(name),
    judgeNames,
    `${close === null || close === word ? "" : `Did you mean "${close}:${rest}"? `}Write openai:${name} for a model of that name on a server.`,
  );
}

/**
 * Returns the model name of a judge without opening it; null if neither `spec` nor JUDGE_MODEL names one.
 *
 * @throws PeriodicEvalError `config` for an unknown prefix, as `openJudge`.
 */
export const judgeName = (spec?: string | null): string | null => readSpec(spec).model || null;

function readSpec(spec?: string | null) {
  const text = judgeSpec(spec) ?? "";
  const [, provider, model] = /^(?:(openai|anthropic):)?(.*)$/s.exec(text)!;
  if (provider === undefined && parseLocalJudge(text) === null) checkPrefix(text);
  return { text, provider, model: model!.trim() };
}
