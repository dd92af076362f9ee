// Bundles the installed packages for browsers. examples/browser/bundling.slow.test.ts does the same with their sources.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { root } from "../steps.mjs";

/**
 * Bundles every import path that runs in browsers from the packages in a project.
 *
 * @returns The import paths that cannot be bundled, each with the first error.
 */
export async function bundleForBrowsers(project) {
  const entries = JSON.parse(readFileSync(join(root, "examples", "browser", "entries.json"), "utf8"));
  const problems = [];
  for (const entry of entries) {
    const stdin = { contents: `export * from ${JSON.stringify(entry)};`, resolveDir: project };
    const options = { bundle: true, platform: "browser", format: "esm", write: false, logLevel: "silent" };
    // An import of Node that browsers lack is an error of esbuild.
    await build({ ...options, stdin }).catch(({ errors: [{ text, location }] }) =>
      problems.push(`${entry} for browsers: ${location?.file}: ${text}`),
    );
  }
  console.log(
    `${problems.length === 0 ? "ok  " : "FAIL"} bundles for browsers of ${entries.length} import paths`,
  );
  return problems;
}
