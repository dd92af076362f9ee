/** Markup that needs no escaping. Only `html` and `trusted` create it. */
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

/** Escapes a string for an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** Fills a template. Escapes every value that is not markup itself; null, undefined and false become an empty string. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const parts = strings.map((text, i) => text + (i < values.length ? markupOf(values[i]) : ""));
  return { markup: parts.join("") };
}

/** Marks the output of a library that escapes its input as safe. */
export function trusted(markup: string): Html {
  return { markup };
}

function markupOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return "";
  if (typeof value === "string") return escapeHtml(value);
  if (typeof value === "number") return String(value);
  return "markup" in value ? value.markup : value.map(markupOf).join("");
}

/** Renders a value as a block of JSON for the page's script. An escaped `<` cannot end the block. */
export const dataBlock = ([id, value]: readonly [string, unknown]): Html =>
  html`<script type="application/json" id="${id}">${trusted(JSON.stringify(value).replaceAll("<", "\\u003c"))}</script>`;
