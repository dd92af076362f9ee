import { html, trusted, type Html, type HtmlValue } from "./html.ts";
import { style } from "./style.ts";

/** What a page may do: show itself. No script runs, nothing is fetched. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

export interface PageParts {
  readonly title: string;
  readonly main: HtmlValue;
  /** Said before that the page makes no request. */
  readonly source: Html;
  /** Style of this kind of page alone. */
  readonly ownStyle?: string;
}

/** A self-contained HTML file that makes no request. */
export function htmlDocument({ title, main, source, ownStyle = "" }: PageParts): string {
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · periodic-eval</title>
        <style>
          ${trusted(style)}${trusted(ownStyle)}
        </style>
      </head>
      <body>
        <main>${main}</main>
        <footer>${source} This page makes no request and runs no script.</footer>
      </body>
    </html> `;
  return page.markup;
}
