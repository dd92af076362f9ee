import { isCount, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import {
  PeriodicEvalError,
  type Message,
  type Prompt,
  type TemplateKwargs,
  type Completion,
} from "@periodic-eval/core";
import { checkPrompt } from "@periodic-eval/core/model";
import { arrayOrNull, at, isString } from "../http/reply-fields.ts";

/** A prompt in the form that a server receives. The server renders the chat. */
export interface ServedChat {
  /** Messages. A system prompt is the first one. */
  readonly messages: readonly Message[];
  /** Null if the prompt has none. */
  readonly templateKwargs: TemplateKwargs | null;
}

/**
 * Returns the messages and template variables of a prompt.
 *
 * @throws PeriodicEvalError `model` for a prompt that only a model in memory accepts: plain text, token ids, or a chat that
 *   must have no system block.
 */
export function chatOf(where: string, prompt: Prompt): ServedChat {
  checkPrompt(prompt, where);
  if (!("messages" in prompt))
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: "text" in prompt ? "a prompt of plain text" : "a prompt of token ids",
      expected: "messages, because the server renders the chat",
      fix: "Send messages.",
    });
  const { messages, system = "omit", templateKwargs = {} } = prompt;
  if (system === "no_system_block")
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: 'the system prompt "no_system_block"',
      expected: '"omit" or { text }: the server renders the chat and does not report what its template adds',
      fix: 'Write "omit", or measure the model in memory.',
    });
  return {
    messages: typeof system === "object" ? [{ role: "system", content: system.text }, ...messages] : messages,
    templateKwargs: Object.keys(templateKwargs).length === 0 ? null : templateKwargs,
  };
}

/** Returns the error for template variables that the API does not accept. */
export function templateKwargsError(where: string, kwargs: TemplateKwargs, api: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where,
    got: `chat template variables (${Object.keys(kwargs).join(", ")})`,
    expected: `none, because ${api} does not accept them`,
    fix: "Remove chatTemplate.kwargs, or measure through a server that accepts chat_template_kwargs, such as vLLM.",
  });
}

/** Parts of a content that are not the answer. */
const ignoredParts = [
  "thinking",
  "redacted_thinking",
  "reasoning",
  "reasoning_content",
  "reasoning_text",
  "reference",
];

/**
 * Returns the text of a message: its content, a string or an array of parts, without the parts with thinking; the refusal without
 * a content. Empty for a message whose content is null, because the model wrote only thinking (`reasoning_content`) or tool calls.
 * Null for another value.
 *
 * @throws PeriodicEvalError `model` for a part of an unknown type.
 */
export function messageText(where: string, message: unknown): string | null {
  const content = at(message, "content");
  if (isString(content)) return content;
  const parts = arrayOrNull(content);
  if (parts !== null) return parts.map((part) => partText(where, part)).join("");
  const refusal = at(message, "refusal");
  if (isString(refusal)) return refusal;
  // Some servers omit fields that are null.
  return content === null || (content === undefined && isString(at(message, "role"))) ? "" : null;
}

function partText(where: string, part: unknown): string {
  if (isString(part)) return part;
  const type = at(part, "type") ?? "text";
  const text = at(part, type === "refusal" ? "refusal" : "text");
  if ((type === "text" || type === "output_text" || type === "refusal") && isString(text)) return text;
  if (ignoredParts.includes(type as string)) return "";
  throw new PeriodicEvalError({
    code: "model",
    where,
    got: `a content with a part ${isRecord(part) ? `of the type ${quoteValue(type)}` : quoteValue(part)}`,
    expected: "parts of the type text",
    fix: "Use a model that answers with text.",
  });
}

const failures =
  /error|abort|cancel|timed?_?out|fail|interrupt|disconnect|unavailable|overload|rate_limit|insufficient/;
const ends = new RegExp(
  `^(?:${[
    String.raw`(?:stop|stopped|eos|eot|end|end_of)(?:_(?:sequence|string|str|tokens?|(?:token_)?ids?|words?|eos|turn|text|message|sentence|stream))?`,
    "(?:tool|function)_(?:calls?|use)",
    "completed?|done|finish|finished|success|normal",
    "content_filter|content_filtered|refusal|safety|sensitive|recitation",
  ].join("|")})$`,
);

/**
 * Returns how a completion ended. A reason that is not a known end (`stop`, `eos`, `stop_sequence`, `tool_calls` …) is `length`,
 * whatever its name: nothing says that the completion is whole. Without a reason, a completion of `maxNewTokens` tokens was cut off.
 *
 * @param reason A string, or an object with `type`; missing, null or empty if it is unknown.
 * @throws PeriodicEvalError `model` for a reason that says that the server failed.
 */
export function finishOf(
  where: string,
  reason: unknown,
  outputTokens: unknown,
  maxNewTokens: number = Infinity,
): Completion["finish"] {
  const source = at(reason, "type") ?? reason ?? "";
  if (source === "") return isCount(outputTokens) && outputTokens >= maxNewTokens ? "length" : "stop";
  if (!isString(source)) return "length";
  const name = source
    .toLowerCase()
    .replaceAll(/[\s-]+/g, "_")
    .replace(/^finish_reason_/, "");
  if (failures.test(name))
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: `the finish reason ${quoteValue(source)}`,
      expected: "a completion",
      fix: "Check the server's log, then try again.",
    });
  return ends.test(name) ? "stop" : "length";
}
