// Makes the pages of the docs site: those of docs/, with generated reference pages, and links that hold on the site.
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { generatedSections, nav, sections } from "../../docs/site/sidebar.mjs";
import { root } from "../steps.mjs";
import { webAddress } from "../package-fields.mjs";
import { apiPages, examplePages } from "./generated-pages.mjs";
import { changeProse, linkPattern, titleOf } from "./markdown.mjs";
import { generatedParts, withSections } from "./generated-sections.mjs";

const docs = join(root, "docs");
const readJson = (...path) => JSON.parse(readFileSync(join(root, ...path), "utf8"));

/** The files of docs/ by path: pages as text, pictures as true. The API reports are for diffs, and site/ is no page. */
function filesOfDocs() {
  const files = readdirSync(docs, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.join(entry.parentPath.replaceAll("\\", "/"), entry.name).slice(docs.length + 1))
    .filter((path) => !/^(api|site)\//.test(path));
  return {
    pages: files.filter((path) => path.endsWith(".md")),
    assets: files.filter((path) => /\.(png|svg)$/.test(path)),
  };
}

/**
 * Rewrites a link that leaves docs/: examples have pages, other files are in the repository.
 */
function siteLinks(path, text, repository) {
  const from = posix.join("docs", posix.dirname(path));
  return changeProse(text, (prose) =>
    prose.replaceAll(linkPattern, (written, label, target) => {
      if (/^([a-z]+:|#|\/)/.test(target)) return written;
      const [file, anchor] = target.split("#");
      const link = posix.join(from, file);
      const to = (page) =>
        `${label}(${posix.relative(posix.dirname(path), page)}${anchor === undefined ? "" : `#${anchor}`})`;
      const example = /^examples\/(\d\d-[^.]+)\.ts$/.exec(link);
      if (example !== null) return to(`examples/${example[1]}.md`);
      if (link === "examples" || link === "docs/decisions") return to(`${posix.basename(link)}/index.md`);
      if (link === "docs/api") return to("reference/api/index.md");
      if (link.startsWith("docs/")) return written;
      return `${label}(${repository}/blob/main/${link})`;
    }),
  );
}

function decisionsIndex(pages) {
  const notes = pages
    .filter(([path]) => path.startsWith("decisions/"))
    .map(([path, text]) => `- [${titleOf(text)}](${posix.basename(path)})`);
  const intro = "Why things are as they are: a note for each subject, with the numbers that decided.";
  return ["# Decisions", "", intro, "", ...notes, ""].join("\n");
}

/** The last line of docs/index.md, which stands for the starts of the README. */
const startsLink = /^\[.*\]\(\.\.\/README\.md#start\)\n$/m;

/** Returns the starts of the README: its headings of level 3 below "Start". */
function startsOf(readme) {
  const starts = /^## Start\n[^]*?^(### [^]*?)^## /m.exec(readme)[1];
  return changeProse(starts, (prose) => prose.replaceAll("](docs/", "]("));
}

/** Returns the first page with its headings of level 3 as tabs. */
function withTabs(text) {
  const [before, ...starts] = text.split(/^### /m);
  const tabs = starts.map((start, at) => ({ id: `start-${at + 1}`, lines: start.split("\n") }));
  const buttons = tabs.map(
    ({ id, lines: [title] }, at) =>
      `<input type="radio" name="start" id="${id}"${at === 0 ? " checked" : ""}><label for="${id}">${title}</label>`,
  );
  const parts = tabs.map(({ id, lines }) => `<div class="${id}">\n${lines.slice(1).join("\n")}\n</div>`);
  return [before, `<div class="starts">`, ...buttons, ...parts, "</div>\n"].join("\n");
}

/** Returns the pages of the site by path, and the paths of pictures. */
export async function makePages() {
  const { pages: paths, assets } = filesOfDocs();
  const written = paths.toSorted().map((path) => [path, readFileSync(join(docs, path), "utf8")]);
  const parts = await generatedParts();
  const repository = webAddress(readJson("package.json"));
  const pages = new Map(written.map(([path, text]) => [path, withSections(text, parts)]));
  const readme = readFileSync(join(root, "README.md"), "utf8");
  pages.set(
    "index.md",
    pages.get("index.md").replace(startsLink, () => startsOf(readme)),
  );
  pages.set("decisions/index.md", decisionsIndex(written));
  for (const [path, text] of [...examplePages(root), ...apiPages(root)]) pages.set(path, text);
  for (const [path, text] of pages) pages.set(path, siteLinks(path, text, repository));
  return { pages, assets, repository };
}

/** Checks that the sidebar lists each page once. */
function checkSidebar(pages) {
  const listed = sections.flatMap((section) => section.pages);
  const isGenerated = (path) => generatedSections.some(({ under }) => path.startsWith(under));
  const forgotten = [...pages.keys()].filter(
    (path) => path !== "index.md" && !listed.includes(path) && !isGenerated(path),
  );
  const missing = listed.filter((path) => !pages.has(path));
  return [
    ...forgotten.map((path) => `docs/${path}: docs/site/sidebar.mjs does not list it`),
    ...missing.map((path) => `docs/site/sidebar.mjs: docs/${path} does not exist`),
  ];
}

const linkOf = (path) => `/${path.replace(/\.md$/, "").replace(/(^|\/)index$/, "$1")}`;

function sidebarOf(pages) {
  const item = (path) => ({ text: titleOf(pages.get(path)), link: linkOf(path) });
  return [
    ...sections.map(({ text, pages: paths }) => ({ text, collapsed: false, items: paths.map(item) })),
    ...generatedSections.map(({ text, under }) => ({
      text,
      collapsed: true,
      items: [...pages.keys()]
        .filter((path) => path.startsWith(under))
        .toSorted((a, b) => (a.endsWith("/index.md") ? -1 : b.endsWith("/index.md") ? 1 : a < b ? -1 : 1))
        .map(item),
    })),
  ];
}

/**
 * Writes the source of the site for VitePress into `folder`.
 *
 * @returns `{ pages, problems }`: the pages by path, and what is wrong with the sidebar.
 */
export async function stage(folder, { base }) {
  const { pages, assets, repository } = await makePages();
  rmSync(folder, { recursive: true, force: true });
  const write = (path, text) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const [path, text] of pages) write(path, path === "index.md" ? withTabs(text) : text);
  for (const path of assets) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(docs, path), join(folder, path));
  }
  const site = join(docs, "site");
  cpSync(join(site, "config.mjs"), join(folder, ".vitepress", "config.mjs"));
  cpSync(join(site, "github-slug.mjs"), join(folder, ".vitepress", "github-slug.mjs"));
  cpSync(join(site, "theme"), join(folder, ".vitepress", "theme"), { recursive: true });
  mkdirSync(join(folder, "public"), { recursive: true });
  cpSync(join(site, "icon.svg"), join(folder, "public", "icon.svg"));
  // Pages as Markdown, and the first picture, name pictures by their paths.
  for (const path of assets) cpSync(join(docs, path), join(folder, "public", path));
  write(".vitepress/site.json", JSON.stringify({ base, repository, nav, sidebar: sidebarOf(pages) }));
  return { pages, problems: checkSidebar(pages) };
}
