// Installs a tool of a script into .cache on its first use, so that `npm install` of a clone does not grow.
import { createHash } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder, npm, root } from "./steps.mjs";

/**
 * Installs packages of npm into a folder of `.cache/tools/NAME` unless they are there, and returns that folder. Its name contains a
 * hash of the versions and overrides, so that a changed one is installed again.
 *
 * @param packages Exact versions by name.
 * @param script The npm script to repeat if the registry cannot be reached.
 * @param overrides npm's overrides for the packages' dependencies.
 * @param flags More flags for `npm install`.
 * @throws Missing if npm cannot install them.
 */
export function installedTool(name, packages, script, { overrides = {}, flags = [] } = {}) {
  const manifest = `${JSON.stringify({ private: true, dependencies: packages, overrides }, null, 2)}\n`;
  const versions = Object.entries(packages).map(
    ([name, version]) => `${name.replaceAll("/", "-")}-${version}`,
  );
  const hash = createHash("sha256").update(manifest).digest("hex").slice(0, 8);
  const folder = join(root, ".cache", "tools", name, `${versions.join("_")}-${hash}`);
  if (existsSync(join(folder, "node_modules"))) return folder;
  makeFolder(folder, (made) => {
    writeFileSync(join(made, "package.json"), manifest);
    const fixed = ["--prefix", made, "--ignore-scripts", "--no-package-lock"];
    npm(["install", ...fixed, ...flags], `npm install ${versions.join(" ")}`, script);
    return made;
  });
  return folder;
}
