// Writes the API reference, a page per import path with every public name, its docstring and its declaration; and a page of each example.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { githubSlug } from "../../docs/site/github-slug.mjs";
import { publicApi } from "../public-api.mjs";

const kinds = [
  { kind: "Functions", types: ["TSDeclareFunction", "FunctionDeclaration"] },
  { kind: "Classes", types: ["ClassDeclaration"] },
  { kind: "Values", types: ["VariableDeclaration"] },
  { kind: "Types", types: ["TSInterfaceDeclaration", "TSTypeAliasDeclaration", "TSEnumDeclaration", null] },
];

/** Escapes what Vue or Markdown would read as a tag, an interpolation or a heading, outside of inline code. */
export const escapeProse = (text) =>
  text
    .split(/(`[^`]*`)/)
    .map((part, at) =>
      at % 2 === 1
        ? part.replaceAll("{{", "{ {")
        : part
            .replaceAll("<", "&lt;")
            .replaceAll("{{", "&#123;&#123;")
            .replaceAll(/([*_|])/g, "\\$1"),
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
    const labels = {
      returns: "Returns",
      throws: "Throws",
      default: "Default:",
      see: "See",
      deprecated: "Deprecated:",
    };
    return labels[name] === undefined ? [] : [`- ${labels[name]} ${escapeProse(said)}`];
  });
  const paragraphs = description
    .trim()
    .split(/((?:^ {4}.*\n?)+)/m)
    .map((part) =>
      /^ {4}/.test(part)
        ? `\`\`\`ts\n${part.replaceAll(/^ {4}/gm, "").trimEnd()}\n\`\`\`\n`
        : escapeProse(part),
    )
    .join("");
  return [paragraphs, listed.join("\n")].filter((part) => part !== "").join("\n\n");
}

const declaration = (code) =>
  code.map((part) => part.replaceAll(/^export (declare )?/gm, "").replace(/^default /, "")).join("\n");

/** The public names that a declaration mentions, as links to their pages. */
function mentions(name, code, places) {
  const words = new Set(
    code
      .join("\n")
      .replaceAll(/\/\*[^]*?\*\//g, "")
      .match(/\b[A-Z]\w+\b/g),
  );
  const links = [...words].filter((word) => word !== name && places.has(word));
  if (links.length === 0) return [];
  return [`See also ${links.map((word) => `[\`${word}\`](${places.get(word)})`).join(", ")}.`, ""];
}

const mark = "// @@@ ";

/** Formats the declarations of all pages in one process: declaration files have a function on one line, however long. */
function formatted(root, entries) {
  // Outside of the repository: oxfmt skips files that git ignores.
  const folder = mkdtempSync(join(tmpdir(), "declarations-"));
  writeFileSync(join(folder, ".oxfmtrc.json"), JSON.stringify({ printWidth: 72 }));
  for (const { page, names } of entries) {
    const parts = names.map(([name, { code }]) => `${mark}${name}\n${declaration(code)}\n`);
    writeFileSync(join(folder, `${page}.d.ts`), parts.join(""));
  }
  const oxfmt = join(root, "node_modules", "oxfmt", "bin", "oxfmt");
  execFileSync(process.execPath, [oxfmt, "-c", join(folder, ".oxfmtrc.json"), folder], {
    cwd: folder,
    stdio: "pipe",
  });
  const pages = entries.map((entry) => {
    const text = readFileSync(join(folder, `${entry.page}.d.ts`), "utf8");
    const codes = new Map(
      text
        .split(mark)
        .slice(1)
        .map((part) => [part.split("\n")[0], part.slice(part.indexOf("\n") + 1).trim()]),
    );
    return { ...entry, codes };
  });
  rmSync(folder, { recursive: true });
  return pages;
}

function pageOf({ title, names, description, codes }, places) {
  const lines = [`# ${title}`, "", description, ""];
  for (const { kind, types } of kinds) {
    const members = names.filter(([, declared]) => types.includes(declared.kind));
    if (members.length > 0) lines.push(`## ${kind}`, "");
    for (const [name, { code, doc }] of members) {
      lines.push(`### ${name}`, "", ...(doc === "" ? [] : [docstring(doc), ""]));
      lines.push("```ts", codes.get(name), "```", "", ...mentions(name, code, places));
    }
  }
  return lines.join("\n");
}

/** Maps each name to its page and anchor; the first import path that has the name counts. */
function placesOf(entries) {
  const places = new Map();
  for (const { page, names } of entries) {
    const seen = new Map();
    const members = kinds.flatMap(({ kind, types }) => {
      const listed = names.filter(([, declared]) => types.includes(declared.kind)).map(([name]) => name);
      return listed.length === 0 ? [] : [kind, ...listed];
    });
    for (const name of members) {
      const slug = githubSlug(name);
      const count = seen.get(slug) ?? 0;
      seen.set(slug, count + 1);
      if (!places.has(name)) places.set(name, `${page}#${slug}${count === 0 ? "" : `-${count}`}`);
    }
  }
  return places;
}

/** Returns `[path, text]` of each example's page, and the index. */
export function examplePages(root) {
  const files = readdirSync(join(root, "examples")).filter((file) => /^\d\d-[^.]+\.ts$/.test(file));
  const pages = files.map((file) => {
    const code = readFileSync(join(root, "examples", file), "utf8");
    const comment = /^(?:\/\/.*\n)+/.exec(code)?.[0] ?? "";
    const said = comment.replaceAll(/^\/\/ ?/gm, "").replaceAll("\n", " ");
    const [title] = said.split(/(?<=[^.])[.:,](?= )/);
    const name = file.replace(/\.ts$/, "");
    const run = `npm run example ${name.slice(0, 2)}`;
    const text = [
      `# ${escapeProse(title.trim())}`,
      "",
      `\`examples/${file}\`, in a clone of the repository: \`${run}\`. The example's data are in \`examples/micro-world\` and \`examples/village\`.`,
      "",
      "```ts",
      code.trimEnd(),
      "```",
      "",
    ];
    return { name, title: title.trim(), path: `examples/${name}.md`, text: text.join("\n") };
  });
  const index = [
    "# Examples",
    "",
    "Complete programs. Each of them runs in CI, in a short form.",
    "",
    "| example | |",
    "|---|---|",
    ...pages.map(({ name, title }) => `| [${name}](${name}.md) | ${escapeProse(title)} |`),
    "",
  ];
  return [["examples/index.md", index.join("\n")], ...pages.map(({ path, text }) => [path, text])];
}

/** Returns the pages of the API reference, one per import path: `[path, text]`. */
export function apiPages(root) {
  const entries = readdirSync(join(root, "packages"))
    .filter((folder) => existsSync(join(root, "packages", folder, "package.json")))
    .flatMap((folder) => {
      const manifest = JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8"));
      return publicApi(join(root, "packages", folder), manifest).map(({ subpath, names }) => ({
        page: `${posix.join(folder, subpath).replaceAll("/", "-")}.md`,
        title: posix.join(manifest.name, subpath),
        description: subpath === "." ? (manifest.description ?? "") : `A subpath of \`${manifest.name}\`.`,
        names: names.filter(([, { code }]) => !code[0].startsWith("//")),
      }));
    });
  const places = placesOf(entries);
  const index = [
    "# API",
    "",
    "Every public name of every package, from the declarations that the packages ship.",
    "",
    "| import path | names |",
    "|---|---|",
    ...entries.map(({ page, title, names }) => `| [\`${title}\`](${page}) | ${names.length} |`),
    "",
  ];
  return [
    ["reference/api/index.md", index.join("\n")],
    ...formatted(root, entries).map((entry) => [`reference/api/${entry.page}`, pageOf(entry, places)]),
  ];
}
