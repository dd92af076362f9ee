/** Markup that may stand in the page as it is. Only `html` and `trusted` make it. */
export interface Html {
  readonly markup: string;
}

export type HtmlValue = Html | string | number | null | undefined | false | readonly HtmlValue[];

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text as it must stand in an element or in a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** A template whose values are escaped unless they are markup themselves; null, undefined and false leave nothing. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const parts = strings.map((text, i) => text + (i < values.length ? markupOf(values[i]) : ""));
  return { markup: parts.join("") };
}

/** Markup made by a library that escapes for itself. */
export function trusted(markup: string): Html {
  return { markup };
}

function markupOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return "";
  if (typeof value === "string") return escapeHtml(value);
  if (typeof value === "number") return String(value);
  return "markup" in value ? value.markup : value.map(markupOf).join("");
}
