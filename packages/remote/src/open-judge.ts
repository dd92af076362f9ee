import {
  judgeGrader,
  PeriodicEvalError,
  type EvaluableModel,
  type JudgeGrader,
  type JudgeOptions,
  type ModelWith,
} from "@periodic-eval/core";
import { anthropicModel } from "./anthropic.ts";
import { openAiCompatible } from "./openai.ts";
import type { ServedModelOptions } from "./served-model.ts";

export type OpenJudgeOptions = Omit<JudgeOptions, "model"> & {
  /** Of the model's client; `concurrency` and time limits of its own are for one attempt. */
  readonly client?: Omit<ServedModelOptions, "model">;
};

/**
 * The judge that a text names: `openai:MODEL`, `anthropic:MODEL`, or a model's name alone, which is Anthropic's where it
 * begins with `claude-`, else that of an OpenAI-compatible server (OPENAI_BASE_URL). What the environment variable
 * JUDGE_MODEL names where nothing is given.
 *
 * @throws PeriodicEvalError `config` where neither names one, for wrong options, or where there is no key.
 */
export function openJudge(spec?: string | null, options: OpenJudgeOptions = {}): JudgeGrader {
  const { client, ...judge } = options;
  return judgeGrader({ ...judge, model: judgeModel(spec, client) });
}

/** The model of `openJudge`, for whatever else it may serve. */
export function judgeModel(
  spec?: string | null,
  client: Omit<ServedModelOptions, "model"> = {},
): EvaluableModel & ModelWith<"generate"> {
  const { text, provider, model } = readSpec(spec);
  if (model === "") {
    throw new PeriodicEvalError({
      code: "config",
      where: "judge model",
      got: text === "" ? "none" : JSON.stringify(text),
      expected: '"openai:MODEL", "anthropic:MODEL" or a model\'s name',
      fix: "Name one in the configuration (judge_model), or set the environment variable JUDGE_MODEL.",
    });
  }
  const isAnthropic = provider === "anthropic" || (provider === undefined && model.startsWith("claude-"));
  return (isAnthropic ? anthropicModel : openAiCompatible)({ ...client, model });
}

/** What the judge that a text names is called, without opening it; null where neither it nor JUDGE_MODEL names one. */
export const judgeName = (spec?: string | null): string | null => readSpec(spec).model || null;

function readSpec(spec?: string | null) {
  const text = (spec ?? "").trim() || (process.env["JUDGE_MODEL"] ?? "").trim();
  const [, provider, model] = /^(?:(openai|anthropic):)?(.*)$/s.exec(text)!;
  return { text, provider, model: model!.trim() };
}
