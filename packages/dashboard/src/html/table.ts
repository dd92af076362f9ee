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
