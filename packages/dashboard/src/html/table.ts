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

/** A column of `rowTable`. Without a class it holds numbers, aligned to the right. */
export type RowColumn<Row> = readonly [
  heading: string | Html,
  cell: (row: Row) => HtmlValue,
  className?: string,
];

export interface RowTableOptions<Row> {
  readonly caption?: Html;
  readonly className?: string;
  readonly rowClass?: (row: Row) => HtmlValue;
  readonly noun?: string;
  /** Of many rows, those of the highest rank are in view. Default: the last rows, which are the newest. */
  readonly rank?: (row: Row, at: number) => number;
}

const rowsInView = 200;

/** Renders a table of rows, which the first column names. Folds all rows but 200. */
export function rowTable<Row>(
  label: string,
  rows: readonly Row[],
  columns: readonly RowColumn<Row>[],
  options: RowTableOptions<Row> = {},
): Html {
  const { rowClass, noun = "measurement", rank = (_row, at) => at } = options;
  const heads = columns.map(([heading, , className = ""]) => ({ heading, className }));
  const rowOf = (row: Row): Html => {
    const [name, ...cells] = columns.map(([, cell]) => cell(row));
    return html`<tr${rowClass && html` class="${rowClass(row)}"`}><th scope="row">${name}</th>${cells.map(
      (cell, at) => {
        const className = columns[at + 1]![2];
        return html` <td${className !== undefined && html` class="${className}"`}>${cell}</td>`;
      },
    )}</tr>`;
  };
  if (rows.length <= rowsInView) return table(label, heads, rows.map(rowOf), options);
  const ranked = rows.map((row, at) => ({ row, rank: rank(row, at) })).sort((a, b) => b.rank - a.rank);
  const inView = new Set(ranked.slice(0, rowsInView).map(({ row }) => row));
  const folded = rows.filter((row) => !inView.has(row));
  return html`${table(label, heads, rows.filter((row) => inView.has(row)).map(rowOf), options)}
    <details>
      <summary>${plural(folded.length, `more ${noun}`)}</summary>
      ${table(`${label}: more`, heads, folded.map(rowOf), options)}
    </details>`;
}
