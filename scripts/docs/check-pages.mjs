// Checks the pages of the docs before they are built: links and code blocks.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { root } from "../steps.mjs";
import { checkCode } from "./check-code.mjs";
import { checkCommands, checkFiles } from "./check-blocks.mjs";
import { anchorsOf, codeBlocks, linksOf } from "./markdown.mjs";
import { generatedParts, stalePages } from "./generated-sections.mjs";

const isExternal = (target) => /^[a-z][a-z+.-]*:/i.test(target);

/**
 * Checks the links of files as they are in the repository. The build of the site checks those of generated pages.
 *
 * @param files Text by path from the repository's root.
 */
function checkLinks(files) {
  const problems = [];
  let count = 0;
  for (const [path, text] of files)
    for (const { target, line } of linksOf(text)) {
      if (isExternal(target)) continue;
      count++;
      const [file, anchor] = target.split("#");
      const linked = file === "" ? path : posix.join(posix.dirname(path), decodeURI(file));
      const complain = (what) => problems.push(`${path}:${line}: ${target}: ${what}`);
      const other = files.get(linked);
      if (other === undefined && !existsSync(join(root, linked))) complain("no such file");
      else if (anchor !== undefined && other !== undefined && !anchorsOf(other).has(anchor))
        complain("no such heading");
    }
  return { problems, count };
}

/** Languages of blocks without a check here: printed output, and Python, which packages/python/tests/test_docs.py and trl.slow.test.ts run. */
const unchecked = ["", "html", "python", "text"];
/** Languages that a check reads. */
const checked = ["ts", "js", "sh", "yaml", "jsonl"];

/** The line under the title of a decision note. */
const statusLine = /^# .+\n\nStatus: in force since \d{4}-\d\d-\d\d(, last changed \d{4}-\d\d-\d\d)?\.\n/;

/** The Markdown files of the repository that people read: the root's, those of docs/, results, and the READMEs of packages. */
function repositoryFiles() {
  const paths = [
    ...readdirSync(root).filter((file) => file.endsWith(".md")),
    ...readdirSync(join(root, "packages"))
      .map((name) => `packages/${name}/README.md`)
      .filter((path) => existsSync(join(root, path))),
    ...readdirSync(join(root, "docs"), { recursive: true })
      .map((path) => posix.join("docs", path.replaceAll("\\", "/")))
      .filter((path) => path.endsWith(".md") && !path.startsWith("docs/api/")),
    ...readdirSync(join(root, "benchmarks/results")).map((file) => `benchmarks/results/${file}`),
  ];
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));
}

const notesWithoutStatus = (pages) =>
  [...pages]
    .filter(([path, text]) => /^decisions\/(?!index\.md)/.test(path) && !statusLine.test(text))
    .map(([path]) => `docs/${path}: no status. Write "Status: in force since YYYY-MM-DD." below the title.`);

/**
 * Checks all pages of the site.
 *
 * @param pages The pages by path, with generated ones.
 * @returns `{ problems, summary }`
 */
export async function checkPages(pages) {
  const written = [...pages].filter(([path]) => !/^(reference\/api|examples|decisions)\//.test(path));
  const results = {
    links: checkLinks(repositoryFiles()),
    "TypeScript and JavaScript blocks": checkCode(written),
    commands: await checkCommands(written),
    "YAML and JSON Lines blocks": await checkFiles(written),
  };
  const unknown = [];
  for (const [path, text] of written)
    for (const block of codeBlocks(text))
      if (![...checked, ...unchecked].includes(block.language))
        unknown.push(`docs/${path}:${block.line}: no check reads blocks of ${block.language}`);
  return {
    problems: [
      ...Object.values(results).flatMap(({ problems }) => problems),
      ...unknown,
      ...notesWithoutStatus(pages),
    ],
    summary: Object.entries(results)
      .map(([what, { count }]) => `${count} ${what}`)
      .join(", "),
  };
}

if (process.argv[1]?.endsWith("check-pages.mjs")) {
  const { makePages } = await import("./stage.mjs");
  const { pages } = await makePages();
  const { problems, summary } = await checkPages(pages);
  for (const [path] of stalePages(await generatedParts()))
    problems.push(`${relative(root, path)}: generated sections are stale. Run npm run api.`);
  for (const problem of problems) console.error(problem);
  console.log(`${summary}: ${problems.length} problems`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
