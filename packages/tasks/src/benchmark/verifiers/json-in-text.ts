import type { Json } from "@periodic-eval/core";
import { findJsonObjects } from "@periodic-eval/core/grading";

/** Fenced blocks of Markdown, of JSON or of no language. */
const fence = /```(?:json|JSON)?[ \t]*\n([^]*?)```/g;

/**
 * The JSON that a text is: all of it, else its last fenced block that is JSON, else the first object in it, or list that
 * holds one, else its first list: "[1]" before an object is a footnote.
 */
export function jsonIn(text: string): { readonly value: Json } | null {
  const fenced = [...text.matchAll(fence)].map((match) => match[1]!).reverse();
  for (const candidate of [text, ...fenced]) {
    const read = parsed(candidate);
    if (read !== null) return read;
  }
  const values = valuesIn(text);
  return (
    values.find(({ value }) => isObject(value) || (value as readonly Json[]).some(isObject)) ??
    values[0] ??
    null
  );
}

/** Every object that stands in the text and in no other, from left to right. */
export const objectsIn = (text: string): readonly { readonly value: Json }[] =>
  findJsonObjects(text).flatMap(({ start, end }) => parsed(text.slice(start, end)) ?? []);

/** Objects and lists that stand in no other, from left to right. */
function valuesIn(text: string): readonly { readonly value: Json }[] {
  const objects = findJsonObjects(text);
  const spans = [...objects, ...bracketsIn(text, objects)].sort((a, b) => a.start - b.start);
  let last = 0;
  return spans.flatMap(({ start, end }) => {
    const read = start < last ? null : parsed(text.slice(start, end));
    if (read !== null) last = end;
    return read ?? [];
  });
}

/** What stands between square brackets, the brackets included; neither in objects nor, between brackets, in texts. */
function bracketsIn(text: string, objects: readonly Span[]): readonly Span[] {
  const ends = new Map(objects.map(({ start, end }) => [start, end]));
  const open: number[] = [];
  const found: Span[] = [];
  for (let at = 0; at < text.length;) {
    const sign = text[at];
    if (sign === "[") open.push(at);
    else if (sign === "]" && open.length > 0) found.push({ start: open.pop()!, end: at + 1 });
    at = ends.get(at) ?? (sign === '"' && open.length > 0 ? afterText(text, at) : at + 1);
  }
  return found;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

const quoted = /"(?:[^"\\\n]|\\.)*"/y;

function afterText(text: string, start: number): number {
  quoted.lastIndex = start;
  return quoted.test(text) ? quoted.lastIndex : start + 1;
}

const isObject = (value: Json): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parsed(text: string): { readonly value: Json } | null {
  try {
    return { value: JSON.parse(text) as Json };
  } catch {
    return null;
  }
}
