import Table from "cli-table3";
import type { Colours } from "./terminal.ts";

/** A column's heading. Plain strings are right-aligned (numbers), `{ words }` is left-aligned. */
export type Column = string | { readonly words: string };

const borders = [
  "top",
  "top-mid",
  "top-left",
  "top-right",
  "bottom",
  "bottom-mid",
  "bottom-left",
  "bottom-right",
  "left",
  "left-mid",
  "mid",
  "mid-mid",
  "right",
  "right-mid",
] as const;
const noBorders = Object.fromEntries(borders.map((name) => [name, ""]));

/** Returns a table without lines between its cells. */
export function plainTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  colours: Colours,
): string {
  const table = new Table({
    head: columns.map((column) => colours.dim(typeof column === "string" ? column : column.words)),
    chars: { ...noBorders, middle: "  " },
    colAligns: columns.map((column) => (typeof column === "string" ? "right" : "left")),
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
  });
  table.push(...rows.map((row) => [...row]));
  return table.toString().replaceAll(/ +$/gm, "");
}
