import { type Prompt, PeriodicEvalError } from "@periodic-eval/contracts";
import { isRecord, quoteValue } from "@periodic-eval/contracts/options";

/**
 * Requires that a prompt is an object: JavaScript passes a string where TypeScript would refuse it.
 *
 * @throws PeriodicEvalError `data` with the prompt that a string probably means.
 */
export function checkPrompt(prompt: Prompt, where = "prompt"): void {
  if (isRecord(prompt) && ["text", "ids", "messages"].some((key) => key in prompt)) return;
  const got = quoteValue(prompt);
  const content = typeof prompt === "string" ? got : '"…"';
  throw new PeriodicEvalError({
    code: "data",
    where,
    got,
    expected: "an object with messages, text or ids",
    fix: `Write { messages: [{ role: "user", content: ${content} }] } for a chat, or { text: ${content} } for raw text.`,
  });
}
