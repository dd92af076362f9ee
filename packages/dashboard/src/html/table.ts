import { plural } from "./format.ts";
import { html, type Html, type HtmlValue } from "./html.ts";

/** A column. A string is the heading of numbers, aligned to the right; an object describes text, aligned to the left unless `className` is set. */
export type Column = string | { readonly heading: string | Html; readonly className?: string };

/** Renders a table that scrolls horizontally on narrow screens, also with the keyboard. */
export function table(
  label: string,
  columns: readonly Column[],
  rows: HtmlValue,
  { caption, className }: { readonly caption?: Html; readonly className?: string } = {},
): Html {
  const head = columns.map((column) =>
    typeof column === "string"
      ? html`<th scope="col">${column}</th>`
      : html`<th scope="col" class="${column.className ?? "left"}">${column.heading}</th>`,
  );
  return html`<div class="scroll" tabindex="0" role="group" aria-label="${label}">
    <table${className !== undefined && html` class="${className}"`}>
      ${
        caption &&
        html`<caption>
          ${caption}
        </caption>`
      }
      <thead><tr>${head}</tr></thead>
      <tbody>${rows}</tbody>
    </table>
  </div>`;
}

/** Renders the facts at the top of a page as terms and values. */
export function factList(facts: readonly (readonly [term: string | Html, value: string | Html])[]): Html {
  return html`<dl class="facts">
    ${facts.map(
      ([term, value]) =>
        html`<div>
          <dt>${term}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

/** How many rows the tables of a section show, and where its links lead. */
export interface SectionOptions {
  /** Prefix of the ids of a run's sections. Empty on the page of one run; unique per run on a page of several runs, which omits receipts. */
  readonly idPrefix: string;
  readonly maxRows: number;
  /** Address of the page that shows all rows; null if this page does. */
  readonly fullPage: string | null;
}

/** The options of a page that shows one run in full. */
export const allRows: SectionOptions = { idPrefix: "", maxRows: Infinity, fullPage: null };

/** Returns the last rows, which are the newest ones. */
export const lastRows = <T>(rows: readonly T[], { maxRows }: SectionOptions): readonly T[] =>
  rows.slice(-maxRows);

/** Returns the first rows, for tables that begin with the most severe ones. */
export const firstRows = <T>(rows: readonly T[], { maxRows }: SectionOptions): readonly T[] =>
  rows.slice(0, maxRows);

/** States how many rows a table omits, with a link to all of them; false if it shows all. */
export function truncationNote(
  rowCount: number,
  noun: string,
  { maxRows, fullPage }: SectionOptions,
  shown: "last" | "first" = "last",
): Html | false {
  if (rowCount <= maxRows) return false;
  const link = fullPage !== null && html` <a href="${fullPage}">Show all ${rowCount}</a>`;
  return html`<p class="key cut">The ${shown} ${maxRows} of ${plural(rowCount, noun)}.${link}</p>`;
}
