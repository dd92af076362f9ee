import { askPython } from "./python.test-data.ts";

/** The rendering of a template by transformers. */
export type Reference =
  | { readonly text: string; readonly generated: readonly (readonly [number, number])[] }
  /** `raised`: the text of `raise_exception`; null for other errors. */
  | { readonly error: string; readonly raised: string | null };

/** Renders templates in one Python process. */
export function askJinja(
  work: { readonly chats: readonly object[] } | { readonly templates: readonly object[] },
) {
  const lines = askPython("jinja-reference.test-data.py", work).trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as Reference);
}

interface Rendered {
  readonly text: string;
  readonly generated: readonly (readonly [number, number])[] | null;
}

/** Compares a rendering with the reference; returns null if they are equal, and otherwise what differs. */
export function compareWith(reference: Reference, render: () => Rendered): "refused" | object | null {
  let rendered: Rendered;
  try {
    rendered = render();
  } catch (error) {
    const { name, message } = error as Error;
    if (name === "UnsupportedError") return "refused";
    const isExpected = "error" in reference && (reference.raised === null || reference.raised === message);
    return name === "TemplateError" && isExpected ? null : { reference, error: `${name}: ${message}` };
  }
  const { text, generated } = rendered;
  const isEqual =
    "text" in reference &&
    reference.text === text &&
    JSON.stringify(reference.generated) === JSON.stringify(generated ?? []);
  return isEqual ? null : { reference, text, generated };
}
