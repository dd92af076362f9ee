import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { clientScript, pageWithPolicy } from "./document.ts";
import { html } from "./html.ts";

const parts = { title: "run", main: html`<p>text</p>`, source: html`From files.` };
const scripts = (markup: string) =>
  [...markup.matchAll(/<script>([^]*?)<\/script>/g)].map(([, text]) => text!);

it("allows the page's own script by its hash, and nothing else", () => {
  const { markup, policy } = pageWithPolicy({ ...parts, data: {} });
  const [script, ...others] = scripts(markup);
  expect(others).toEqual([]);
  expect(script).toBe(clientScript());
  const hash = createHash("sha256").update(script!).digest("base64");
  expect(policy.split("; ").find((part) => part.startsWith("script-src"))).toBe(
    `script-src 'sha256-${hash}'`,
  );
  expect(policy).not.toMatch(/unsafe|connect-src|\*/);
});

it("has no script without data", () => {
  const { markup, policy } = pageWithPolicy(parts);
  expect(markup).not.toContain("<script");
  expect(policy).not.toContain("script-src");
});

it("lets the script of a served page request from its own server only", () => {
  expect(pageWithPolicy({ ...parts, data: {}, isServed: true }).policy).toContain("; connect-src 'self'; ");
});

it("escapes data that would end its block", () => {
  const hostile = "</script><script>alert(1)</script><!--";
  const { markup } = pageWithPolicy({ ...parts, data: { "run-data": { name: hostile } } });
  const json = /<script type="application\/json" id="run-data">([^]*?)<\/script>/.exec(markup)![1]!;
  expect(json).not.toContain("<");
  expect(JSON.parse(json)).toEqual({ name: hostile });
});
