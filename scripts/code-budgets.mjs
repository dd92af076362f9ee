// Measures the code for the budgets of scripts/house.mjs.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { parseSync } from "oxc-parser";
import { publicApi } from "./public-api.mjs";
import { root } from "./steps.mjs";

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
export function measureCode() {
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
