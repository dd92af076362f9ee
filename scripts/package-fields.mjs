// Writes the fields that all packages share into their package.json, and the repository's address and the version into the files that
// need them. The address and the author stand once, in the root package.json. No dependencies.
// Usage: npm run fields [-- --check]     --check writes nothing, and fails if something would change or a package lacks a part
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { linksOf } from "./docs/markdown.mjs";

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
const mostReadmeLines = 60;

/** The order of the fields in a package.json; others follow in their own order. */
const order =
  "name version description keywords homepage bugs repository license author type engines publishConfig sideEffects files".split(
    " ",
  );

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

function withSharedFields(root, folder, manifest) {
  const merged = { ...manifest, ...sharedFields(root, folder) };
  const keys = [
    ...order.filter((key) => key in merged),
    ...Object.keys(merged).filter((key) => !order.includes(key)),
  ];
  return Object.fromEntries(keys.map((key) => [key, merged[key]]));
}

/** Returns the text of a file with every address of a repository on GitHub replaced by the project's. */
const withAddress = (text, address) => text.replaceAll(/https:\/\/github\.com\/[\w.-]+\/[\w-]+/g, address);

const relativeLinks = (markdown) =>
  linksOf(markdown)
    .map(({ target }) => target.split("#")[0])
    .filter((target) => target !== "" && !/^[a-z]+:/.test(target));

/** Returns what a package lacks that a person who finds it on npm needs. */
function missingParts(folder, manifest, read) {
  const problems = [];
  const need = (holds, problem) => holds || problems.push(`packages/${folder}: ${problem}`);
  need(manifest.description?.length > 20, "package.json has no description");
  need(manifest.keywords?.length >= 5, "package.json has fewer than 5 keywords");
  need(manifest.files?.includes("CHANGELOG.md"), "`files` of package.json lacks CHANGELOG.md");
  need(read("CHANGELOG.md") !== null, "has no CHANGELOG.md");
  const readme = read("README.md");
  if (readme === null) return [...problems, `packages/${folder}: has no README.md`];
  need(readme.startsWith(`# ${manifest.name}\n`), `README.md does not begin with "# ${manifest.name}"`);
  need(readme.split("\n").length <= mostReadmeLines, `README.md has more than ${mostReadmeLines} lines`);
  need(/```sh\n[^`]*npm install /.test(readme), "README.md has no `npm install` line");
  need(/```(js|yaml)\n/.test(readme), "README.md has no code");
  for (const link of relativeLinks(readme))
    need(read(link) !== null, `README.md links to ${link}, which does not exist`);
  return problems;
}

/**
 * Compares the files of a project with what they should be.
 *
 * @returns `changes`, the new text of each file that differs by its path, and `problems` that no script can mend.
 */
export function findDifferences(project) {
  const path = (file) => join(project, ...file.split("/"));
  const readFile = (file) => (existsSync(path(file)) ? readFileSync(path(file), "utf8") : null);
  const root = parse(readFile("package.json"));
  const changes = new Map();
  const problems = [];
  const set = (file, text) => text !== readFile(file) && changes.set(file, text);
  for (const folder of readdirSync(join(project, "packages"))) {
    const file = `packages/${folder}/package.json`;
    if (readFile(file) === null) continue;
    const manifest = withSharedFields(root, folder, parse(readFile(file)));
    set(file, print(manifest));
    const read = (name) => {
      const named = join(project, "packages", folder, ...name.split("/"));
      return !existsSync(named) ? null : name.endsWith(".md") ? readFileSync(named, "utf8") : "";
    };
    problems.push(...missingParts(folder, manifest, read));
  }
  for (const file of filesWithAddress) {
    const text = readFile(file);
    if (text === null) problems.push(`${file} does not exist`);
    else set(file, withAddress(text, webAddress(root)));
  }
  const { version } = parse(readFile("packages/core/package.json") ?? "{}");
  for (const [file, line] of Object.entries(version === undefined ? {} : filesWithVersion))
    set(file, (changes.get(file) ?? readFile(file)).replace(line, `$1${version}$2`));
  return { changes, problems };
}

function main(isCheck) {
  const { changes, problems } = findDifferences(projectRoot);
  for (const [file, text] of changes) {
    if (isCheck) problems.push(`${file} differs from the root package.json. Run \`npm run fields\`.`);
    else writeFileSync(join(projectRoot, file), text);
  }
  if (!isCheck) console.log(`${changes.size} files written`);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main(process.argv.includes("--check"));
