// Installs a tool of a script into .cache on its first use, so that `npm install` of a clone does not grow.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder, npm, root } from "./optional-engine.mjs";

/**
 * Installs packages of npm into `.cache/tools/NAME` unless they are there, and returns that folder.
 *
 * @param packages Exact versions by name.
 * @param script The npm script to repeat if the registry cannot be reached.
 * @throws Missing if npm cannot install them.
 */
export function installedTool(name, packages, script, overrides = {}) {
  const manifest = `${JSON.stringify({ private: true, dependencies: packages, overrides }, null, 2)}\n`;
  const versions = Object.entries(packages).map(
    ([name, version]) => `${name.replaceAll("/", "-")}-${version}`,
  );
  const folder = join(root, ".cache", "tools", name, versions.join("_"));
  if (existsSync(join(folder, "node_modules"))) return folder;
  makeFolder(folder, (made) => {
    writeFileSync(join(made, "package.json"), manifest);
    const flags = ["--prefix", made, "--ignore-scripts", "--no-package-lock"];
    npm(["install", ...flags], `npm install ${versions.join(" ")}`, script);
    return made;
  });
  return folder;
}
