// Writes docs/api/<package>.api.md: every public name with its declaration, so that a change of the public API shows in a
// diff. `npm run api` writes the files; `npm run check` compares them (--check). Reads the built .d.ts files.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "docs", "api");
/** Subpaths without a promise: helpers that the packages of this repository share. */
const unstable = new Set(["./internal", "./platform"]);
const modules = new Map();

/** A declaration file's own declarations, by name, and where its other exports come from. */
function readModule(file) {
  const known = modules.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(file, "utf8");
  const { program } = parseSync(file, text);
  const found = { declared: new Map(), exported: new Map(), stars: [] };
  modules.set(file, found);
  const imported = new Map();
  for (const statement of program.body) {
    const source = statement.source?.value;
    const from = source?.startsWith(".") ? join(dirname(file), source.replace(/\.(ts|js)$/, ".d.ts")) : null;
    if (statement.type === "ImportDeclaration") {
      for (const { local, imported: name } of statement.specifiers)
        if (name !== undefined && from !== null) imported.set(local.name, { from, name: name.name });
    } else if (statement.type === "ExportAllDeclaration") {
      if (from !== null) found.stars.push(from);
    } else if (statement.type === "ExportNamedDeclaration" && statement.declaration === null) {
      for (const { local, exported } of statement.specifiers)
        found.exported.set(exported.name, from === null ? { name: local.name } : { from, name: local.name });
    } else {
      const declaration = statement.declaration ?? statement;
      const names = declaration.declarations?.map(({ id }) => id.name) ?? [declaration.id?.name];
      for (const name of names.filter((one) => one !== undefined)) {
        const before = found.declared.get(name) ?? [];
        found.declared.set(name, [...before, text.slice(statement.start, statement.end)]);
        if (statement.type === "ExportNamedDeclaration") found.exported.set(name, { name });
      }
    }
  }
  for (const [name, target] of found.exported)
    if (target.from === undefined && imported.has(target.name))
      found.exported.set(name, imported.get(target.name));
  return found;
}

/** The public names of a declaration file, each with its declaration's text. */
function publicNames(file) {
  const { exported, stars } = readModule(file);
  const names = new Map();
  for (const star of stars) for (const [name, text] of publicNames(star)) names.set(name, text);
  for (const [name, target] of exported) names.set(name, declarationOf(file, target));
  return names;
}

function declarationOf(file, { from, name }) {
  if (from !== undefined) return publicNames(from).get(name) ?? `// ${name}: from another package`;
  return readModule(file).declared.get(name)?.join("\n") ?? `// ${name}: from another package`;
}

/** A declaration without comments and without what every line has in common. */
const plain = (text) =>
  text
    .replaceAll(/\/\*\*?[\s\S]*?\*\//g, "")
    .replaceAll(/^export (declare )?/gm, "")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .join("\n");

function reportOf(name, manifest) {
  const lines = [
    `# API of ${manifest.name}`,
    "",
    "Every public name with its declaration. Written by `npm run api`; do not edit.",
  ];
  const subpaths = Object.entries(manifest.exports ?? {}).filter(
    ([subpath, target]) => typeof target === "object" && !unstable.has(subpath),
  );
  for (const [subpath, { types }] of subpaths) {
    const names = [...publicNames(join(root, "packages", name, types))].sort(([a], [b]) => (a < b ? -1 : 1));
    lines.push("", `## ${posix.join(manifest.name, subpath)}`, "", "```ts");
    lines.push(...names.map(([, text]) => plain(text)), "```");
  }
  return `${lines.join("\n")}\n`;
}

const isCheck = process.argv.includes("--check");
mkdirSync(folder, { recursive: true });
const reports = new Map();
for (const name of readdirSync(join(root, "packages"))) {
  const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  if (manifest.exports !== undefined) reports.set(`${name}.api.md`, reportOf(name, manifest));
}
const written = new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), "utf8")]));
const stale = [...new Set([...reports.keys(), ...written.keys()])].filter(
  (file) => reports.get(file) !== written.get(file),
);
if (isCheck && stale.length > 0) {
  console.error(`the public API changed: ${stale.join(", ")}. Run "npm run api" and commit docs/api.`);
  process.exitCode = 1;
}
if (!isCheck) for (const [file, text] of reports) writeFileSync(join(folder, file), text);
