// Checks the code against scripts/house.mjs: which way packages and their rooms import, what core
// may load, the size of core's root, the budgets. Type imports count: a type that points the wrong way is a design that does.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { pathToFileURL } from "node:url";
import { parseSync } from "oxc-parser";
import {
  budgets,
  inBrowsers,
  maximumRootValues,
  outsideOfBrowsers,
  packages,
  subpathsOnly,
} from "./house.mjs";
import { publicApi } from "./public-api.mjs";
import { root } from "./steps.mjs";

const problems = [];

const packageNames = new Map(
  Object.keys(packages).map((folder) => [
    JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8")).name,
    folder,
  ]),
);

/** Every TypeScript file of a package's `src` except tests and their helpers, by path from the repository's root. */
const sourcesOf = (name) =>
  readdirSync(join(root, "packages", name, "src"), { recursive: true })
    .map((path) => `packages/${name}/src/${path.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".ts") && !/\.(test|test-data)\.ts$/.test(path))
    .filter((path) => !path.includes("/src/testing/"));

/**
 * The specifiers of a file: `fixed` of all static imports and re-exports, `dynamic` of dynamic imports of a string literal.
 */
function importsOf(file) {
  const text = readFileSync(join(root, file), "utf8");
  const { module } = parseSync(file, text);
  const fixed = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) => entries.map((entry) => entry.moduleRequest?.value)),
  ].filter((specifier) => specifier !== undefined);
  const dynamic = module.dynamicImports
    .map(({ moduleRequest: { start, end } }) => /^(["'`])([^$]*)\1$/.exec(text.slice(start, end))?.[2])
    .filter((specifier) => specifier !== undefined);
  return { fixed, dynamic };
}

const packageOf = (file) => file.split("/")[1];
const withinSource = (file) => file.split("/").slice(3).join("/");
const isMap = (file) => posix.basename(file) === "index.ts";
const targetOf = (file, specifier) => posix.join(dirname(file).replaceAll("\\", "/"), specifier);

/** The room of a file: the longest entry that its path begins with; null where none does. */
function roomOf(file) {
  const { rooms } = packages[packageOf(file)];
  if (rooms === undefined) return "";
  const path = withinSource(file);
  const matches = Object.keys(rooms).filter((room) =>
    /\/$|^$/.test(room) ? path.startsWith(room) : path === room,
  );
  return matches.sort((a, b) => b.length - a.length)[0] ?? null;
}

function checkRelative(file, specifier) {
  const target = targetOf(file, specifier);
  if (packageOf(target) !== packageOf(file)) return "a relative path leaves the package";
  if (isMap(file)) return null;
  if (isMap(target)) return "an index.ts is for other packages";
  const [from, to] = [roomOf(file), roomOf(target)];
  const order = Object.keys(packages[packageOf(file)].rooms ?? {});
  if (from === null || to === null || from === to) return null;
  if (subpathsOnly[packageOf(file)]?.includes(to)) return `only its index.ts may import ${to}`;
  return order.indexOf(to) < order.indexOf(from)
    ? null
    : `${from} must not import ${to}, which scripts/house.mjs lists after it`;
}

function checkPackage(file, specifier) {
  const name = /^(@periodic-eval\/[^/]+|periodic-eval)/.exec(specifier)?.[0];
  if (name === undefined) return null;
  const [from, to] = [packageOf(file), packageNames.get(name)];
  if (from === to) return "a package imports its own files by relative paths";
  return packages[from].imports.includes(to) ? null : `${from} must not import ${to ?? name}`;
}

function checkOutside(file, specifier) {
  if (!inBrowsers.includes(packageOf(file))) return null;
  const broken = outsideOfBrowsers.find(({ pattern }) => pattern.test(specifier));
  if (broken === undefined || broken.allowedIn.some((path) => file.startsWith(`packages/${path}`)))
    return null;
  return `only ${broken.allowedIn.join(", ") || "another package"} may import it`;
}

const isSource = /^(packages|scripts)\/.*\.(ts|tsx|mjs|js|py|cc|cpp|h|wat)$/;
const isOther =
  /\.(test|test-data|bench)\.\w+$|\.d\.ts$|\/(goldens|assets|fixtures|tests?|dist|node_modules)\/|(^|\/)test_\w+\.py$|conftest\.py$/;

/** Files of Git's index by package; `scripts` is one too. */
function sources() {
  const names = execFileSync("git", ["ls-files", "packages", "scripts"], { cwd: root, encoding: "utf8" });
  const files = names.split("\n").filter((name) => isSource.test(name) && !isOther.test(name));
  const byPackage = new Map();
  for (const file of files) {
    const name = file.startsWith("scripts/") ? "scripts" : file.split("/")[1];
    byPackage.set(name, [...(byPackage.get(name) ?? []), file]);
  }
  return byPackage;
}

/** Counts the lines of a file that are neither blank nor comments nor imports. */
function codeLines(file) {
  const isPython = file.endsWith(".py");
  const [comment, opening, closing] = isPython ? [/^#/, '"""', '"""'] : [/^(\/\/|;;)/, "/*", "*/"];
  const isImport = isPython
    ? /^(import|from)\b/
    : /^(import\b(?!\()|#include|export \* from|export (type )?\{.*\} from)/;
  let [lines, until] = [0, null];
  for (const line of readFileSync(join(root, file), "utf8")
    .split("\n")
    .map((text) => text.trim())) {
    if (until !== null) {
      if (until(line)) until = null;
    } else if (line.startsWith(opening)) {
      if (!line.slice(opening.length).includes(closing)) until = (text) => text.includes(closing);
    } else if (isImport.test(line)) {
      if (line.startsWith("import") && line.includes("{") && !line.includes("}"))
        until = (text) => /from\s+["']/.test(text);
      if (isPython && line.includes("(") && !line.includes(")")) until = (text) => text.includes(")");
    } else if (line !== "" && !comment.test(line)) lines += 1;
  }
  return lines;
}

/** Returns how many names each file exports and the files that import it, of TypeScript files. */
function graph(files) {
  const importers = new Map();
  const exported = [];
  for (const file of files.filter((name) => name.endsWith(".ts"))) {
    const { module } = parseSync(file, readFileSync(join(root, file), "utf8"));
    const requests = [...module.staticImports, ...module.staticExports.flatMap(({ entries }) => entries)]
      .map(({ moduleRequest }) => moduleRequest?.value)
      .filter((specifier) => specifier?.startsWith("."));
    for (const specifier of new Set(requests)) {
      const target = posix.join(dirname(file), specifier);
      importers.set(target, (importers.get(target) ?? 0) + 1);
    }
    exported.push(module.staticExports.flatMap(({ entries }) => entries).length);
  }
  return { importers, exported: exported.sort((a, b) => a - b) };
}

/** Returns today's numbers, by the names of the budgets. */
function measureCode() {
  const byPackage = sources();
  const files = [...byPackage.values()].flat();
  const lines = [...byPackage].map(([name, list]) => [
    name,
    list.reduce((sum, file) => sum + codeLines(file), 0),
  ]);
  const { importers, exported } = graph(files);
  const isSmall = (file) => readFileSync(join(root, file), "utf8").split("\n").length - 1 < 30;
  const names = [...byPackage.keys()]
    .filter((name) => existsSync(join(root, "packages", name, "package.json")))
    .flatMap((name) => {
      const folder = join(root, "packages", name);
      const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      return publicApi(folder, manifest).flatMap((entry) => entry.names);
    });
  const documented = names.filter(([, { doc }]) => doc !== "").length;
  return {
    lines: Object.fromEntries(lines),
    files: files.length,
    smallFiles: files.filter((file) => importers.get(file) === 1 && isSmall(file)).length,
    exportedNames: exported[Math.floor(exported.length / 2)],
    publicNames: names.length,
    documented: Math.floor((100 * documented) / names.length),
  };
}

const files = Object.keys(packages).flatMap(sourcesOf);
const imports = new Map(files.map((file) => [file, importsOf(file)]));

for (const [file, { fixed, dynamic }] of imports) {
  if (!isMap(file) && roomOf(file) === null) problems.push(`${file} belongs to no room of scripts/house.mjs`);
  for (const specifier of [...fixed, ...dynamic]) {
    const problem = specifier.startsWith(".")
      ? checkRelative(file, specifier)
      : (checkPackage(file, specifier) ?? checkOutside(file, specifier));
    if (problem !== null) problems.push(`${file} imports ${specifier}: ${problem}`);
  }
}

const rootValues = Object.keys(
  await import(pathToFileURL(join(root, "packages/core/dist/index.js")).href),
).length;
if (rootValues > maximumRootValues)
  problems.push(`@periodic-eval/core exports ${rootValues} values, more than ${maximumRootValues}`);

/** A budget that is exceeded fails, and a package whose lines shrank lowers its budget. */
function checkBudgets({ lines, documented, ...counts }) {
  for (const [name, count] of Object.entries(lines))
    if (count > (budgets.lines[name] ?? 0))
      problems.push(`${name} has ${count} lines of code, budget ${budgets.lines[name] ?? 0}`);
  for (const [name, count] of Object.entries(counts))
    if (count > budgets[name]) problems.push(`${name}: ${count}, budget ${budgets[name]}`);
  if (documented < budgets.documented)
    problems.push(
      `${documented} % of the public names have a docstring, at least ${budgets.documented} % had`,
    );
}
const measured = measureCode();
checkBudgets(measured);

for (const problem of problems) console.error(problem);
if (process.argv.includes("--print")) console.log(JSON.stringify(measured, null, 2));
console.log(`${files.length} files, ${rootValues} values in core's root, ${problems.length} problems`);
process.exitCode = problems.length > 0 ? 1 : 0;
