import { createHash } from "node:crypto";
import { html, trusted, type Html, type HtmlValue } from "./html.ts";
import { style } from "./style.ts";

export interface PageParts {
  readonly title: string;
  readonly main: HtmlValue;
  /** Said before that the page makes no request. */
  readonly source: Html;
  /** Style of this kind of page alone. */
  readonly ownStyle?: string;
}

/** A page, and what it may do. */
export interface PolicedPage {
  readonly markup: string;
  /** Its content security policy: it shows itself, in its own style; no script runs, nothing is fetched or sent. */
  readonly policy: string;
}

/** A self-contained HTML file that makes no request, and its policy, for who sends that as a header too. */
export function policedPage({ title, main, source, ownStyle = "" }: PageParts): PolicedPage {
  const whole = `${style}${ownStyle}`;
  const policy = policyOf(whole);
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · periodic-eval</title>
        ${trusted(`<style>${whole}</style>`)}
      </head>
      <body>
        <main>${main}</main>
        <footer>${source} This page makes no request and runs no script.</footer>
      </body>
    </html> `;
  return { markup: page.markup, policy };
}

/** A self-contained HTML file that makes no request. */
export const htmlDocument = (parts: PageParts): string => policedPage(parts).markup;

/** By hash: of what stands in the page, this style alone counts, and no `style` attribute does. */
function policyOf(whole: string): string {
  const hash = createHash("sha256").update(whole).digest("base64");
  return [
    "default-src 'none'",
    `style-src 'sha256-${hash}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}
