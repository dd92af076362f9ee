import type { Json } from "@periodic-eval/core";
import { isRecord } from "@periodic-eval/contracts/options";
import { findJsonObjects } from "@periodic-eval/core/grading";

/** Fenced Markdown blocks with the language JSON or none. */
const fence = /```(?:json|JSON)?[ \t]*\n([^]*?)```/g;

/**
 * Finds the JSON in a text: the whole text, or its last fenced block that is JSON, or the first object or array of objects, or the
 * first array. An array such as "[1]" before an object is taken for a footnote.
 */
export function jsonIn(text: string): { readonly value: Json } | null {
  const fenced = [...text.matchAll(fence)].map((match) => match[1]!).reverse();
  for (const candidate of [text, ...fenced]) {
    const read = parsed(candidate);
    if (read !== null) return read;
  }
  const values = valuesIn(text);
  return (
    values.find(({ value }) => isRecord(value) || (value as readonly Json[]).some(isRecord)) ??
    values[0] ??
    null
  );
}

/** Returns every outermost object in the text, from left to right. */
export const objectsIn = (text: string): readonly { readonly value: Json }[] =>
  findJsonObjects(text).flatMap(({ start, end }) => parsed(text.slice(start, end)) ?? []);

/** Returns the outermost objects and arrays, from left to right. */
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

/** Returns the spans of square brackets outside of objects and, within brackets, outside of strings. */
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

function parsed(text: string): { readonly value: Json } | null {
  try {
    return { value: JSON.parse(text) as Json };
  } catch {
    return null;
  }
}
