import type { ModelWith } from "../../contracts/model.ts";
import { completionOf, greedy, type JudgeMethod } from "./method.ts";
import { judgePromptNames } from "./prompts.ts";
import { parseJudgeReply } from "./reply.ts";

/** One prompt, one JSON object with all scores. */
export function jsonMethod(
  model: ModelWith<"generate">,
  scores: readonly string[],
  maxReplyTokens: number,
): JudgeMethod {
  const sampling = { ...greedy, maxNewTokens: maxReplyTokens };
  return {
    prompts: judgePromptNames("json", scores),
    maxOutputTokens: maxReplyTokens,
    sampling: { temperature: greedy.temperature, max_new_tokens: maxReplyTokens },
    async verdict([prompt], call) {
      const { text: raw, model: said } = await completionOf(model, prompt!, sampling, call);
      const named = said === undefined ? {} : { model: said };
      const parsed = parseJudgeReply(raw, scores);
      return "scores" in parsed
        ? { status: "graded", scores: parsed.scores, raw, ...named }
        : { status: "unparsed", raw, ...named };
    },
  };
}
