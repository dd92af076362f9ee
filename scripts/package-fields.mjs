// Writes the fields that all packages share into their package.json, and the repository's address and the version into the files that
// need them. The address and the author stand once, in the root package.json. No dependencies.
// Usage: npm run fields [-- --check]     --check writes nothing, and fails if something would change
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const projectRoot = fileURLToPath(new URL("..", import.meta.url));
/** Files with the version that all packages share, and the line that holds it. */
const filesWithVersion = {
  "CITATION.cff": /^(version: ).*()$/m,
  "packages/python/pyproject.toml": /^(version = ").*(")$/m,
  "packages/core/src/session/records/new-snapshot.ts": /^(export const version = ").*(";)$/m,
};
/** Files with the repository's address that are not a package.json. */
const filesWithAddress = [
  "CITATION.cff",
  ".github/ISSUE_TEMPLATE/config.yml",
  "CODE_OF_CONDUCT.md",
  "packages/python/pyproject.toml",
];

const parse = (text) => JSON.parse(text);
const print = (value) => `${JSON.stringify(value, null, 2)}\n`;

/** Returns the repository's address as a browser opens it: `https://github.com/OWNER/NAME`. */
export const webAddress = ({ repository }) => repository.url.replace(/^git\+/, "").replace(/\.git$/, "");

/** Returns the fields of the package in `packages/FOLDER` that follow from the root package.json. */
function sharedFields(root, folder) {
  const address = webAddress(root);
  return {
    homepage: `${address}/tree/main/packages/${folder}#readme`,
    bugs: { url: `${address}/issues` },
    repository: { ...root.repository, directory: `packages/${folder}` },
    license: root.license,
    author: root.author,
    engines: root.engines,
    // Provenance needs a publisher that npm trusts: the workflow `release`.
    publishConfig: { access: "public", provenance: true },
  };
}

/** Returns the text of a file with every address of a repository on GitHub replaced by the project's. */
const withAddress = (text, address) => text.replaceAll(/https:\/\/github\.com\/[\w.-]+\/[\w-]+/g, address);

/**
 * Compares the files of a project with what they should be.
 *
 * @returns The new text of each file that differs, by its path.
 */
export function findDifferences(project) {
  const path = (file) => join(project, ...file.split("/"));
  const readFile = (file) => (existsSync(path(file)) ? readFileSync(path(file), "utf8") : null);
  const root = parse(readFile("package.json"));
  const changes = new Map();
  const set = (file, text) => text !== readFile(file) && changes.set(file, text);
  for (const folder of readdirSync(join(project, "packages"))) {
    const file = `packages/${folder}/package.json`;
    if (readFile(file) === null) continue;
    set(file, print({ ...parse(readFile(file)), ...sharedFields(root, folder) }));
  }
  for (const file of filesWithAddress) {
    set(file, withAddress(readFile(file), webAddress(root)));
  }
  const { version } = parse(readFile("packages/core/package.json") ?? "{}");
  for (const [file, line] of Object.entries(version === undefined ? {} : filesWithVersion))
    set(file, (changes.get(file) ?? readFile(file)).replace(line, `$1${version}$2`));
  return changes;
}

function main(isCheck) {
  const changes = findDifferences(projectRoot);
  for (const [file, text] of changes) {
    if (!isCheck) writeFileSync(join(projectRoot, file), text);
    else console.error(`${file} differs from the root package.json. Run \`npm run fields\`.`);
  }
  if (!isCheck) console.log(`${changes.size} files written`);
  else if (changes.size > 0) process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main(process.argv.includes("--check"));
