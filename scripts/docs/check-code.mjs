// Type-checks the TypeScript and JavaScript blocks of pages against the built packages.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../steps.mjs";
import { codeBlocks } from "./markdown.mjs";

const folder = join(root, ".build", "doc-blocks");
const importStatement = /^import [^;]*;[^\n]*\n/gm;

/** The declarations in a comment `<!-- given … -->` directly before a block: what the reader's program has. */
const givenOf = (before) => /<!-- given\n([^]*?)-->$/.exec(before)?.[1] ?? "";

/**
 * Joins the blocks of a page into one module: a block sees the names of the blocks before it, and may declare them again. Returns
 * the code, and for each of its lines the line of the page.
 */
function moduleOf(blocks) {
  const lines = [];
  const add = (text, first) => {
    for (const [at, line] of text.split("\n").entries()) lines.push({ line, from: first + at });
  };
  const imported = new Set();
  for (const { code, before, line } of blocks)
    for (const [statement] of `${givenOf(before)}\n${code}`.matchAll(importStatement)) {
      const [, names, source] = /^import (?:type )?\{([^}]*)\} from ("[^"]+")/.exec(statement) ?? [];
      if (names === undefined) {
        if (!imported.has(statement)) add(statement.trimEnd(), line);
        imported.add(statement);
        continue;
      }
      for (const name of names
        .split(",")
        .map((part) => part.trim().replace(/^type /, ""))
        .filter(Boolean)) {
        if (!imported.has(`${name} ${source}`)) add(`import { ${name} } from ${source};`, line);
        imported.add(`${name} ${source}`);
      }
    }
  for (const { code, before, line } of blocks) {
    add("{", line);
    add(givenOf(before).replaceAll(importStatement, ""), line);
    add(
      code.replaceAll(importStatement, (statement) => statement.replaceAll(/[^\n]/g, "")),
      line,
    );
  }
  add("}".repeat(blocks.length), blocks.at(-1).line);
  return lines;
}

const config = (strict, files) => ({
  compilerOptions: {
    target: "es2022",
    lib: ["es2023", "esnext.disposable", "dom"],
    module: "nodenext",
    moduleResolution: "nodenext",
    types: ["node"],
    strict,
    allowJs: true,
    checkJs: true,
    skipLibCheck: true,
    noEmit: true,
    allowImportingTsExtensions: true,
  },
  files,
});

/** Packages that a page installs and the repository may lack are not checked. */
const optional = ["@huggingface/transformers"].filter(
  (name) => !existsSync(join(root, "node_modules", name, "package.json")),
);

/**
 * Checks the blocks of pages: all blocks of a page together, and each block that is saved as a file alone.
 *
 * @param pages `[name, text]` of each page.
 * @returns `{ problems, count }`
 */
export function checkCode(pages) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const modules = new Map();
  let count = 0;
  for (const [path, text] of pages) {
    const blocks = codeBlocks(text).filter(({ language }) => ["ts", "js"].includes(language));
    if (blocks.length === 0) continue;
    count += blocks.length;
    const name = path.replaceAll(/[/.]/g, "-");
    const joined = blocks.filter(({ code }) => !/^export /m.test(code));
    if (joined.length > 0) modules.set(`${name}.mts`, { path, lines: moduleOf(joined) });
    for (const [at, { code, file, line }] of blocks.entries())
      if (file !== null || /^export /m.test(code)) {
        const lines = code.split("\n").map((content, index) => ({ line: content, from: line + index }));
        modules.set(`${name}-${at}.mjs`, { path, lines });
      }
  }
  for (const [name, { lines }] of modules)
    writeFileSync(join(folder, name), lines.map(({ line }) => line).join("\n"));
  writeFileSync(
    join(folder, "given.d.ts"),
    `declare function given<T = any>(): T;\n${optional.map((name) => `declare module "${name}";\n`).join("")}`,
  );
  const problems = [];
  for (const [strict, extension] of [
    [true, ".mts"],
    [false, ".mjs"],
  ]) {
    const files = [...modules.keys()].filter((name) => name.endsWith(extension));
    if (files.length === 0) continue;
    const project = join(folder, `tsconfig${extension}.json`);
    writeFileSync(project, JSON.stringify(config(strict, ["given.d.ts", ...files])));
    problems.push(...compile(project, modules));
  }
  return { problems, count };
}

function compile(project, modules) {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  try {
    execFileSync(process.execPath, [tsc, "-p", project, "--pretty", "false"], { cwd: folder, stdio: "pipe" });
    return [];
  } catch (error) {
    return String(error.stdout)
      .split("\n")
      .filter((line) => /error TS/.test(line))
      .map((line) => {
        const [, name, at, said] = /^(?:.*\/)?([^/(]+)\((\d+),\d+\): (.*)$/.exec(line) ?? [
          null,
          null,
          null,
          line,
        ];
        const page = modules.get(name);
        return page === undefined ? said : `docs/${page.path}:${page.lines[at - 1]?.from ?? "?"}: ${said}`;
      });
  }
}
