// Writes docs/api/<package>.api.md: every public name with its declaration, so that a change of the public API shows in a
// diff. `npm run api` writes the files and the generated sections of docs/reference and CONTRIBUTING.md; `npm run check` compares them (--check). Reads the built .d.ts files.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { publicApi } from "./public-api.mjs";
import { root } from "./steps.mjs";

const folder = join(root, "docs", "api");

/** A declaration without comments and without what every line has in common. */
const plain = (text) =>
  text
    .replaceAll(/\/\*\*?[\s\S]*?\*\//g, "")
    .replaceAll(/^export (declare )?/gm, "")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .join("\n");

/** Returns the report of a package; null if it promises users nothing. */
function reportOf(name, manifest) {
  const entries = publicApi(join(root, "packages", name), manifest);
  if (entries.length === 0) return null;
  const lines = [
    `# API of ${manifest.name}`,
    "",
    "Every public name with its declaration. Written by `npm run api`; do not edit.",
  ];
  for (const { subpath, names } of entries) {
    lines.push("", `## ${posix.join(manifest.name, subpath)}`, "", "```ts");
    lines.push(...names.map(([, { code }]) => plain(code.join("\n"))), "```");
  }
  return `${lines.join("\n")}\n`;
}

const isCheck = process.argv.includes("--check");
mkdirSync(folder, { recursive: true });
const reports = new Map();
for (const name of readdirSync(join(root, "packages"))) {
  if (!existsSync(join(root, "packages", name, "package.json"))) continue;
  const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  const report = reportOf(name, manifest);
  if (report !== null) reports.set(`${name}.api.md`, report);
}
const files = readdirSync(folder).filter((file) => file.endsWith(".md"));
const written = new Map(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]));
const stale = [...new Set([...reports.keys(), ...written.keys()])].filter(
  (file) => reports.get(file) !== written.get(file),
);
if (isCheck && stale.length > 0) {
  console.error(`the public API changed: ${stale.join(", ")}. Run "npm run api" and commit docs/api.`);
  process.exitCode = 1;
}
if (!isCheck) {
  const { generatedParts, stalePages } = await import("./docs/generated-sections.mjs");
  for (const [file, text] of reports) writeFileSync(join(folder, file), text);
  for (const [path, text] of stalePages(await generatedParts())) writeFileSync(path, text);
}
