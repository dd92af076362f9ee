// Runs every static check of the code, two at a time, and prints the output of those that fail.
// Usage: npm run check [-- NAME …]
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { peersPython, root } from "./steps.mjs";

/** Returns the command of an installed package: Node and the package's program, which needs no shell on Windows. */
function tool(command, name = command) {
  const folder = join(root, "node_modules", name);
  const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return [process.execPath, join(folder, typeof bin === "string" ? bin : bin[command])];
}

/** The longest first, so that two at a time end at about the same time. `npm run check` builds before, which checks the types. */
const checks = [
  {
    name: "lint",
    command: [...tool("oxlint"), "--type-aware", "--deny-warnings", "--report-unused-disable-directives"],
  },
  { name: "dead exports", command: [...tool("knip"), "--no-progress"] },
  { name: "packages", command: [process.execPath, "scripts/check-packages.mjs"] },
  { name: "docs", command: [process.execPath, "scripts/docs/check-pages.mjs"] },
  { name: "workflows", command: [process.execPath, "scripts/check-workflows.mjs"] },
  { name: "format", command: [...tool("oxfmt"), "--check"] },
  { name: "house", command: [process.execPath, "scripts/check-house.mjs"] },
  { name: "public API", command: [process.execPath, "scripts/api-report.mjs", "--check"] },
  { name: "fields", command: [process.execPath, "scripts/package-fields.mjs", "--check"] },
];

/** Style and types of the Python package, by the tools of packages/python/requirements.txt. */
const pythonChecks = [
  ["style", "ruff", "check"],
  ["format", "ruff", "format", "--check"],
  ["types", "pyright"],
].map(([name, ...module]) => ({
  name: `Python ${name}`,
  command: [peersPython, "-m", ...module],
  cwd: join(root, "packages", "python"),
}));
if (spawnSync(peersPython, ["-c", "import ruff, pyright"]).status === 0) checks.push(...pythonChecks);
else console.warn(`skip Python: ${peersPython} has not packages/python/requirements.txt`);

function run({ command: [file, ...args], cwd = root }) {
  return new Promise((resolve) => {
    const output = [];
    const child = spawn(file, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.on("data", (chunk) => output.push(chunk));
    child.stderr.on("data", (chunk) => output.push(chunk));
    child.on("error", (error) => resolve({ status: 1, output: error.message }));
    child.on("close", (status) => resolve({ status, output: Buffer.concat(output).toString() }));
  });
}

const wanted = process.argv.slice(2);
const queue = checks.filter(
  ({ name }) => wanted.length === 0 || wanted.some((word) => name.startsWith(word)),
);
const failed = [];

async function worker() {
  for (let check = queue.shift(); check; check = queue.shift()) {
    const started = performance.now();
    const { status, output } = await run(check);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`${status === 0 ? "ok  " : "FAIL"} ${check.name} (${seconds} s)`);
    if (status !== 0) {
      failed.push(check.name);
      console.log(output.trimEnd());
    }
  }
}

await Promise.all([worker(), worker()]);
if (failed.length > 0) {
  console.error(`${failed.length} failed: ${failed.join(", ")}`);
  process.exitCode = 1;
}
