import { html, type Html, type HtmlValue } from "./html.ts";

/** A column: a number by default; words are aligned to the left, or as the class says. */
export type Column = string | { readonly words: string; readonly className?: string };

/** A table that scrolls by itself where the screen is narrow, by keyboard too. */
export function table(
  label: string,
  columns: readonly Column[],
  rows: HtmlValue,
  { caption, className }: { readonly caption?: Html; readonly className?: string } = {},
): Html {
  const head = columns.map((column) =>
    typeof column === "string"
      ? html`<th scope="col">${column}</th>`
      : html`<th scope="col" class="${column.className ?? "words"}">${column.words}</th>`,
  );
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}">
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
