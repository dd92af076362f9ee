// Configures VitePress. scripts/docs/stage.mjs copies this file and writes site.json into the same folder.
import { readFileSync } from "node:fs";
import { githubSlug } from "./github-slug.mjs";

const site = JSON.parse(readFileSync(new URL("site.json", import.meta.url), "utf8"));

// eslint-disable-next-line import/no-default-export -- VitePress reads it
export default {
  title: "periodic-eval",
  description: "See what fine-tuning does to a language model, while it happens.",
  lang: "en",
  base: site.base,
  cleanUrls: false,
  lastUpdated: false,
  // Anchors are checked by scripts/docs/check-pages.mjs.
  ignoreDeadLinks: "localhostLinks",
  markdown: {
    // The default themes have too little contrast.
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    anchor: { slugify: githubSlug },
    toc: { slugify: githubSlug },
    lineNumbers: false,
    languageAlias: { jsonl: "json" },
    // `{{` in code is text, not an expression of Vue.
    config: (md) => {
      md.core.ruler.push("code_is_text", ({ tokens }) => {
        for (const { children } of tokens)
          for (const token of children ?? []) if (token.type === "code_inline") token.attrSet("v-pre", "");
      });
    },
  },
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${site.base}icon.svg` }]],
  // The same page for programs.
  transformHead: ({ pageData: { relativePath } }) =>
    relativePath === "404.md"
      ? []
      : [["link", { rel: "alternate", type: "text/markdown", href: `${site.base}${relativePath}` }]],
  themeConfig: {
    search: {
      provider: "local",
      options: {
        detailedView: true,
        miniSearch: {
          searchOptions: {
            // VitePress sends this function to the browser as text, so it uses no other name. Guides come before decisions.
            boostDocument: (id) =>
              /\/(guides|install|tutorial)/.test(id) ? 2 : /\/decisions\//.test(id) ? 0.2 : 1,
          },
        },
      },
    },
    outline: [2, 3],
    nav: site.nav,
    sidebar: site.sidebar,
    socialLinks: [{ icon: "github", link: site.repository }],
    footer: { message: "Apache-2.0" },
  },
  vite: {
    build: { chunkSizeWarningLimit: 8_000 },
    logLevel: "warn",
  },
};
