// Writes the API reference: a page per package, with every public name, its docstring and its declaration.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, posix } from "node:path";
import { githubSlug } from "../../docs/site/github-slug.mjs";
import { publicApi } from "../public-api.mjs";

const kinds = [
  ["Functions", ["TSDeclareFunction", "FunctionDeclaration"]],
  ["Classes", ["ClassDeclaration"]],
  ["Values", ["VariableDeclaration"]],
  ["Types", ["TSInterfaceDeclaration", "TSTypeAliasDeclaration", "TSEnumDeclaration", null]],
];

/** Escapes what Vue or Markdown would read as a tag, an interpolation or a heading, outside of inline code. */
export const escapeProse = (text) =>
  text
    .split(/(`[^`]*`)/)
    .map((part, at) =>
      at % 2 === 1
        ? part.replaceAll("{{", "{ {")
        : part.replaceAll("<", "&lt;").replaceAll("{{", "&#123;&#123;").replaceAll(/([*_|])/g, "\\$1"),
    )
    .join("");

/** Turns a docstring into Markdown: its text, then parameters, result and errors as a list. */
function docstring(raw) {
  const text = raw
    .split("\n")
    .map((line) => line.replace(/^\s*\*? ?/, ""))
    .join("\n")
    .replaceAll(/\{@link (\S+?)(?: [^}]*)?\}/g, "`$1`")
    .trim();
  const [description, ...tags] = text.split(/^(?=@\w)/m);
  const listed = tags.flatMap((tag) => {
    const [, name, rest] = /^@(\w+)\s*([^]*)$/.exec(tag.trim());
    const said = rest.replaceAll(/\s+/g, " ").trim();
    if (name === "param" || name === "typeParam") {
      const [, parameter, about] = /^(\S+)\s*(?:- )?(.*)$/.exec(said);
      return [`- \`${parameter}\`: ${escapeProse(about)}`];
    }
    const labels = { returns: "Returns", throws: "Throws", default: "Default:", see: "See", deprecated: "Deprecated:" };
    return labels[name] === undefined ? [] : [`- ${labels[name]} ${escapeProse(said)}`];
  });
  return [escapeProse(description.trim()), listed.join("\n")].filter((part) => part !== "").join("\n\n");
}

const declaration = (code) =>
  code.map((one) => one.replaceAll(/^export (declare )?/gm, "").replace(/^default /, "")).join("\n");

/** The public names that a declaration mentions, as links to their pages. */
function mentions(name, code, places) {
  const words = new Set(code.join("\n").replaceAll(/\/\*[^]*?\*\//g, "").match(/\b[A-Z]\w+\b/g));
  const links = [...words].filter((word) => word !== name && places.has(word));
  if (links.length === 0) return [];
  return [`See also ${links.map((word) => `[\`${word}\`](${places.get(word)})`).join(", ")}.`, ""];
}

function packagePage(manifest, api, places, guides) {
  const lines = [`# ${manifest.name}`, "", manifest.description ?? "", ""];
  if (api.length > 1)
    lines.push(...api.map(({ title }) => `- [\`${title}\`](#${githubSlug(title)})`), "");
  for (const { title, names } of api) {
    lines.push(`## \`${title}\``, "");
    for (const [kind, types] of kinds) {
      const members = names.filter(([, found]) => types.includes(found.kind));
      if (members.length === 0) continue;
      for (const [name, { code, doc }] of members) {
        lines.push(`### ${name}`, "", ...(doc === "" ? [] : [docstring(doc), ""]));
        lines.push("```ts", declaration(code), "```", "", ...mentions(name, code, places));
        if (guides.has(name)) lines.push(`Used in ${guides.get(name).join(", ")}.`, "");
      }
    }
  }
  return lines.join("\n");
}

/**
 * Returns the pages of the API reference: `[path, text]`.
 *
 * @param guides Maps a public name to links to the pages that use it.
 */
export function apiPages(root, guides) {
  const packages = readdirSync(join(root, "packages"))
    .filter((folder) => existsSync(join(root, "packages", folder, "package.json")))
    .map((folder) => {
      const manifest = JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8"));
      const api = publicApi(join(root, "packages", folder), manifest).map(({ subpath, names }) => ({
        title: posix.join(manifest.name, subpath),
        names: names.filter(([, { code }]) => !code[0].startsWith("//")),
      }));
      return { folder, manifest, api };
    })
    .filter(({ api }) => api.length > 0);
  const places = new Map();
  for (const { folder, api } of packages.toReversed()) {
    const seen = new Map();
    for (const name of api.flatMap(({ title, names }) => [
      githubSlug(title),
      ...kinds.flatMap(([, types]) => names.filter(([, one]) => types.includes(one.kind)).map(([name]) => name)),
    ])) {
      const slug = githubSlug(name);
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      if (!places.has(name) || count === 0) places.set(name, `${folder}.md#${slug}${count === 0 ? "" : `-${count}`}`);
    }
  }
  const index = ["# API", "", "Every public name of every package, from the declarations that the packages ship.", ""];
  index.push("| package | import paths | names |", "|---|---|---|");
  for (const { folder, manifest, api } of packages)
    index.push(
      `| [\`${manifest.name}\`](${folder}.md) | ${api.map(({ title }) => `[\`${title}\`](${folder}.md#${githubSlug(title)})`).join(", ")} | ${api.reduce((sum, { names }) => sum + names.length, 0)} |`,
    );
  return [
    ["reference/api/index.md", `${index.join("\n")}\n`],
    ...packages.map(({ folder, manifest, api }) => [
      `reference/api/${folder}.md`,
      packagePage(manifest, api, places, guides),
    ]),
  ];
}
