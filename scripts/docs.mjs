// Builds the docs site into .build/docs: static files, with search that needs no server, llms.txt, and each page also as Markdown.
// Usage: npm run docs [-- --check] [--base /PATH/]     --check also checks every link, anchor and code block; --base is the path of
// the site on its host
// VitePress is in .cache/docs; docs/site has its configuration and its lock file.
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { Missing, checkInstalled, npm, root, runToEnd, step } from "./steps.mjs";

const cache = join(root, ".cache", "docs");
const source = join(cache, "pages");
const site = join(root, ".build", "docs");
const demo = join(root, ".build", "browser");
const lock = "package-lock.json";

const sameLock = () =>
  existsSync(join(cache, "node_modules")) &&
  existsSync(join(cache, lock)) &&
  readFileSync(join(cache, lock), "utf8") === readFileSync(join(root, "docs", "site", lock), "utf8");

function fetchVitePress() {
  mkdirSync(cache, { recursive: true });
  rmSync(join(cache, "node_modules"), { recursive: true, force: true });
  for (const file of ["package.json", ".npmrc"]) cpSync(join(root, "docs", "site", file), join(cache, file));
  const locked = join(root, "docs", "site", lock);
  cpSync(locked, join(cache, lock));
  npm(["ci", "--prefix", cache, "--ignore-scripts"], "vitepress", "docs");
}

/** Builds the browser demo. It is built each time: an older one may not show the current sources. */
function buildDemo() {
  const script = join(root, "scripts", "browser.mjs");
  const { status } = spawnSync(process.execPath, [script], { cwd: root, stdio: "inherit" });
  if (status === 0 && existsSync(join(demo, "index.html"))) return;
  throw new Missing(
    "npm run browser",
    `exit status ${status}`,
    "the demo in .build/browser",
    "Run `npm run browser`.",
  );
}

function build() {
  const vitepress = join(cache, "node_modules", "vitepress", "bin", "vitepress.js");
  rmSync(site, { recursive: true, force: true });
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [vitepress, "build", source, "--outDir", site],
    {
      cwd: cache,
      encoding: "utf8",
    },
  );
  if (status === 0) return;
  console.error(
    `${stdout}\n${stderr}`
      .split("\n")
      .filter((line) => !/^\s+at /.test(line))
      .join("\n"),
  );
  throw new Missing(
    "vitepress build",
    `exit status ${status}`,
    "a site",
    "Correct what the lines above name.",
  );
}

const filesOf = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

function report(problems, what) {
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
  console.log(`${what}: ${problems.length === 0 ? "no problems" : `${problems.length} problems`}`);
}

async function main() {
  const { values } = parseArgs({
    options: { check: { type: "boolean", default: false }, base: { type: "string", default: "/" } },
  });
  checkInstalled();
  const started = performance.now();
  step("VitePress is installed", sameLock(), fetchVitePress);
  buildDemo();
  const { stage } = await import("./docs/stage.mjs");
  const { textsForPrograms } = await import("./docs/texts-for-programs.mjs");
  const { pages, problems } = await stage(source, { base: values.base });
  report(problems, `${pages.size} pages`);
  if (values.check) {
    const { checkPages } = await import("./docs/check-pages.mjs");
    const checked = await checkPages(pages);
    report(checked.problems, checked.summary);
  }
  step("the site is built", false, build);
  cpSync(demo, join(site, "demo"), { recursive: true });
  for (const [path, text] of textsForPrograms(pages, values)) {
    mkdirSync(dirname(join(site, path)), { recursive: true });
    writeFileSync(join(site, path), text);
  }
  const files = filesOf(site);
  const size = files.reduce((sum, file) => sum + statSync(file).size, 0);
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  console.log(
    `.build/docs: ${files.length} files, ${(size / 2 ** 20).toFixed(1)} MiB, ${seconds} s. Serve the folder with any static server, at ${values.base}`,
  );
}

await runToEnd(main);
