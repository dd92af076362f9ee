import type { TemplateChat, Tokenizer } from "@periodic-eval/core";
import type { Fault } from "./bad-row.ts";

/** A noncharacter of Unicode before a number that became a string. */
const mark = "\uFDD9";

/**
 * Turns the numbers of a JSON text that JavaScript reads as other numbers than Python into marked strings: 1.0, which Python's
 * templates write as 1.0, and integers beyond 2⁵³ − 1. Returns null if there are none.
 */
export function markLostNumbers(json: string): string | null {
  let hasLost = false;
  const marked = json.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/gs, (token) => {
    if (token.startsWith('"') || !isLost(token)) return token;
    hasLost = true;
    return `"${mark}${token}"`;
  });
  return hasLost ? marked : null;
}

const isLost = (literal: string): boolean =>
  /[.eE]/.test(literal) ? Number.isInteger(Number(literal)) : !Number.isSafeInteger(Number(literal));

/** Reports a marked number that the template writes. A template may read a number, such as a weight, without writing it. */
export function lostNumber(tokenizer: Tokenizer, chat: TemplateChat): Fault | null {
  const { text } = tokenizer.render(chat, { ending: "complete" });
  const literal = new RegExp(`${mark}([-+.\\deE]+)`).exec(text ?? "")?.[1];
  if (literal === undefined) return null;
  return {
    reason: "lost_number",
    got: `the number ${literal}, which JavaScript reads as ${Number(literal)}; write it as a string or as an integer up to 2⁵³ − 1`,
  };
}
