import { plural } from "./format.ts";
import { html, type Html } from "./html.ts";

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
