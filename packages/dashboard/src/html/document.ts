import type * as esbuild from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { glossaryOf } from "./glossary.ts";
import { dataBlock, html, trusted, type Html, type HtmlValue } from "./html.ts";
import { style } from "./style.ts";

export interface PageParts {
  readonly title: string;
  readonly main: HtmlValue;
  /** The first sentence of the footer: where the data comes from. */
  readonly source: Html;
  /** CSS for this kind of page, in addition to the shared style. */
  readonly extraStyle?: string;
  /** Data of the page's script, by the id of its block. A page without it has no script. */
  readonly data?: PageData;
  /** Whether a server sends the page, so that its script may request data from that server. */
  readonly isServed?: boolean;
}

/** JSON values by the id of the element that holds them. `readDataBlock` of `client/` reads them. */
export type PageData = Readonly<Record<string, unknown>>;

/** A page and its content security policy. */
export interface PageWithPolicy {
  readonly markup: string;
  /** Allows the page's own style and script. Forbids forms, and requests except those of a served page's script to its server. */
  readonly policy: string;
}

/** Renders a self-contained HTML page that makes no request. A server also sends the policy as a header. */
export function pageWithPolicy(parts: PageParts): PageWithPolicy {
  const { title, main, source, extraStyle = "", data, isServed = false } = parts;
  const css = `${style}${extraStyle}`;
  const script = data === undefined ? null : clientScript();
  const policy = policyOf(css, script, isServed);
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
        <main>${main} ${glossaryOf(html`${main}`)}</main>
        <footer>${source} ${footnote(script !== null, isServed)}</footer>
        ${data !== undefined && Object.entries(data).map(dataBlock)} ${script !== null && trusted(`<script>${script}</script>`)}
      </body>
    </html> `;
  return { markup: page.markup, policy };
}

/** Renders a self-contained HTML page that makes no request. */
export const htmlDocument = (parts: PageParts): string => pageWithPolicy(parts).markup;

const footnote = (hasScript: boolean, isServed: boolean): string =>
  !hasScript
    ? "This page makes no request and runs no script."
    : isServed
      ? "Its script sends requests to this server only."
      : "This page makes no request. Its script draws the charts and the answers.";

const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Allows only this style sheet and this script, by their hashes. Browsers then ignore `style` attributes. */
function policyOf(css: string, script: string | null, isServed: boolean): string {
  return [
    "default-src 'none'",
    `style-src ${hashOf(css)}`,
    ...(script === null ? [] : [`script-src ${hashOf(script)}`]),
    ...(script !== null && isServed ? ["connect-src 'self'"] : []),
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

const here = import.meta.url;
const isSource = extname(here) === ".ts";
let loaded: string | undefined;

/**
 * Returns the script of the pages: the file that the build bundles; in a process that runs from source, such as a test, a fresh
 * bundle.
 */
export function clientScript(): string {
  return (loaded ??= isSource ? bundleClient() : readFileSync(new URL("../client.js", here), "utf8"));
}

/** Bundles the files of `client/` into one script. Needs the development dependency esbuild. */
export function bundleClient(): string {
  const { buildSync } = createRequire(here)("esbuild") as typeof esbuild;
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(new URL(`../client/main${extname(here)}`, here))],
    bundle: true,
    ...(isSource && { conditions: ["@periodic-eval/source"] }),
    format: "iife",
    minify: true,
    target: "es2022",
    legalComments: "none",
    write: false,
  });
  return outputFiles[0]!.text.trim();
}
