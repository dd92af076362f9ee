import type { ModelWith } from "@periodic-eval/contracts";
import { opensThinking } from "../../model/thinking.ts";
import { completionOf, greedy, judgeChat, type JudgeMethod } from "./method.ts";
import { judgePromptNames } from "./prompts.ts";
import { parseJudgeReply } from "./json-reply.ts";

/** One prompt per answer; the reply is one JSON object with all scores. */
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
      const { text: raw, finish, model: servedModel } = await completionOf(model, prompt!, sampling, call);
      const named = servedModel === undefined ? {} : { model: servedModel };
      const isOpened = opensThinking(model, judgeChat(prompt!));
      const parsed = parseJudgeReply(raw, scores, { finish, isOpened });
      if ("scores" in parsed) return { status: "graded", scores: parsed.scores, raw, ...named };
      return { status: parsed.unparseable === "cut" ? "cut" : "unparsed", raw, ...named };
    },
  };
}
