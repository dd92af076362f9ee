import { html, type Html } from "./html.ts";
import { plural } from "./format.ts";

/** How much of a run a page shows, and where. */
export interface SectionOptions {
  /** Before the ids of the run's sections, where a page has several runs, without their receipts; else empty. */
  readonly prefix: string;
  /** Most rows of a table. */
  readonly most: number;
  /** Where all of them are; null where they are here. */
  readonly whole: string | null;
}

/** A run alone on its page, all of it. */
export const allRows: SectionOptions = { prefix: "", most: Infinity, whole: null };

/** The last rows, those that a running run added. */
export const lastRows = <T>(rows: readonly T[], { most }: SectionOptions): readonly T[] => rows.slice(-most);

/** The first rows, where the gravest stand first. */
export const firstRows = <T>(rows: readonly T[], { most }: SectionOptions): readonly T[] =>
  rows.slice(0, most);

/** Says that rows are left out, and where they are; nothing where none are. */
export function truncationNote(
  all: number,
  noun: string,
  { most, whole }: SectionOptions,
  shown: "last" | "first" = "last",
): Html | false {
  if (all <= most) return false;
  const link = whole !== null && html` <a href="${whole}">Show all ${all}</a>`;
  return html`<p class="key cut">The ${shown} ${most} of ${plural(all, noun)}.${link}</p>`;
}
