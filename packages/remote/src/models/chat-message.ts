import { PeriodicEvalError, type Completion } from "@periodic-eval/core";
import { isCount, isRecord, quoteValue } from "@periodic-eval/core/internal";
import { arrayOrNull, at, isString } from "../http/reply-fields.ts";

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

const lengthReasons =
  /^(?:length|max_(?:output_|completion_|new_)?tokens|max_length|model_length|token_limit)$/i;
const failures = /^(?:error|abort|aborted|network_error|insufficient_system_resource)$/i;

/**
 * Returns how a completion ended. `length` has several names; any other reason is an end of the model's (`stop`, `eos`,
 * `stop_sequence`, `tool_calls` …). Without a reason, a completion of `maxNewTokens` tokens was cut off.
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
  const name = at(reason, "type") ?? reason ?? "";
  if (isString(name) && failures.test(name))
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: `the finish reason ${quoteValue(name)}`,
      expected: "a completion",
      fix: "Check the server's log, then try again.",
    });
  if (name === "") return isCount(outputTokens) && outputTokens >= maxNewTokens ? "length" : "stop";
  return isString(name) && lengthReasons.test(name) ? "length" : "stop";
}
