import { createHash } from "node:crypto";
import { html, trusted, type Html, type HtmlValue } from "./html.ts";
import { style } from "./style.ts";

export interface PageParts {
  readonly title: string;
  readonly main: HtmlValue;
  /** The first sentence of the footer: where the data comes from. */
  readonly source: Html;
  /** CSS for this kind of page, in addition to the shared style. */
  readonly extraStyle?: string;
}

/** A page and its content security policy. */
export interface PageWithPolicy {
  readonly markup: string;
  /** Allows the page's own style. Forbids scripts, requests and forms. */
  readonly policy: string;
}

/** Renders a self-contained HTML page that makes no request. A server also sends the policy as a header. */
export function pageWithPolicy({ title, main, source, extraStyle = "" }: PageParts): PageWithPolicy {
  const css = `${style}${extraStyle}`;
  const policy = policyOf(css);
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · periodic-eval</title>
        ${trusted(`<style>${css}</style>`)}
      </head>
      <body>
        <main>${main}</main>
        <footer>${source} This page makes no request and runs no script.</footer>
      </body>
    </html> `;
  return { markup: page.markup, policy };
}

/**
 * Renders the beginning of a page, up to its `<main>`, before its content is known. `pageWithPolicy` with the same title and style
 * begins with the same markup.
 */
export function pageHead(parts: Pick<PageParts, "title" | "extraStyle">): PageWithPolicy {
  const { markup, policy } = pageWithPolicy({ ...parts, main: "", source: html`` });
  return { markup: markup.slice(0, markup.lastIndexOf("<main>") + "<main>".length), policy };
}

/** Renders a self-contained HTML page that makes no request. */
export const htmlDocument = (parts: PageParts): string => pageWithPolicy(parts).markup;

/** Allows only this style sheet, by its hash. Browsers then ignore `style` attributes. */
function policyOf(css: string): string {
  const hash = createHash("sha256").update(css).digest("base64");
  return [
    "default-src 'none'",
    `style-src 'sha256-${hash}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}
