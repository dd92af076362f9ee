import { readObjects, type Json } from "@periodic-eval/core";

/** Fenced blocks of Markdown, of JSON or of no language. */
const fence = /```(?:json|JSON)?[ \t]*\n([^]*?)```/g;

/** The JSON that a text is: all of it, else its last fenced block that is JSON, else its first object. */
export function jsonIn(text: string): { readonly value: Json } | null {
  const fenced = [...text.matchAll(fence)].map((match) => match[1]!).reverse();
  for (const candidate of [text, ...fenced]) {
    const read = parsed(candidate);
    if (read !== null) return read;
  }
  return objectsIn(text)[0] ?? null;
}

/** Every object that stands in the text and in no other, from left to right. */
export const objectsIn = (text: string): readonly { readonly value: Json }[] =>
  readObjects(text).flatMap(({ start, end }) => parsed(text.slice(start, end)) ?? []);

function parsed(text: string): { readonly value: Json } | null {
  try {
    return { value: JSON.parse(text) as Json };
  } catch {
    return null;
  }
}
