import { execFile } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { temporaryFolder } from "../packages/testing/src/temporary-folder.test-data.ts";
import { root } from "./doc-blocks.test-data.ts";

it("finds no broken link, command, configuration or type error in the docs", async () => {
  const script = join(root, "scripts", "docs", "check-pages.mjs");
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [script]).catch(
    (error: { readonly stdout: string; readonly stderr: string }) => error,
  );
  expect(stderr).toBe("");
  const counts = stdout.match(/\d+/g)?.map(Number) ?? [];
  // Links, code blocks, commands, YAML blocks: a check that finds nothing to check would pass.
  for (const [at, least] of [400, 25, 90, 15].entries()) expect(counts[at]).toBeGreaterThan(least);
});

it("ranks guides before other pages, and decisions last, in the search", async () => {
  const folder = temporaryFolder();
  for (const file of ["config.mjs", "github-slug.mjs"])
    cpSync(join(root, "docs/site", file), join(folder, file));
  writeFileSync(join(folder, "site.json"), "{}");
  const { default: config } = (await import(join(folder, "config.mjs"))) as { default: SiteConfig };
  const { boostDocument } = config.themeConfig.search.options.miniSearch.searchOptions;
  // VitePress sends the text of the function to the browser.
  // oxlint-disable-next-line typescript/no-implied-eval -- as the browser does
  const sent = new Function(`return ${boostDocument.toString()}`)() as typeof boostDocument;
  const [guide, reference, decision] = ["guides/personas", "reference/snapshot", "decisions/leakage"].map(
    (page) => sent(`/base/${page}.html#leakage`),
  );
  expect(guide).toBeGreaterThan(reference!);
  expect(reference).toBeGreaterThan(decision!);
});

it("lists every page in llms.txt, and writes each as Markdown without front matter and HTML", async () => {
  const scripts = new URL("../scripts/docs/", import.meta.url).href;
  const { makePages } = (await import(`${scripts}stage.mjs`)) as { makePages(): Promise<{ pages: Texts }> };
  const { textsForPrograms } = (await import(`${scripts}texts-for-programs.mjs`)) as {
    textsForPrograms(pages: Texts, site: { readonly base: string }): Texts;
  };
  const { pages } = await makePages();
  const texts = textsForPrograms(pages, { base: "/base/" });
  const list = texts.get("llms.txt")!;
  expect(list).toMatch(/^# periodic-eval\n\n> \S.*\n\n## Start\n/);
  const listed = [...list.matchAll(/^- \[[^\n]+?\]\(\/base\/([^)]+)\)(?:: .+)?$/gm)].map(([, path]) => path);
  expect(new Set(listed)).toEqual(new Set(pages.keys()));
  expect(listed.length).toBeGreaterThan(100);
  for (const path of pages.keys()) expect(texts.get(path), path).toMatch(/^# \S/);
  // The first page has the starts of the README, without the tabs of the site.
  expect(texts.get("index.md")).toContain("\n### TensorFlow.js\n\n```sh\nnpm install periodic-eval ");
  expect(texts.get("index.md")).not.toContain("<div");
  expect(texts.get("guides/trl.md")).toBe(pages.get("guides/trl.md"));
});

type Texts = ReadonlyMap<string, string>;

interface SiteConfig {
  readonly themeConfig: {
    readonly search: {
      readonly options: {
        readonly miniSearch: { readonly searchOptions: { readonly boostDocument: (id: string) => number } };
      };
    };
  };
}
