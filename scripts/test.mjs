// Runs a tier of tests, and names what it leaves out. Usage: node scripts/test.mjs unit|slow|parity [ARGUMENTS OF VITEST]
// Writes .cache/tests/TIER.json, the report that .ci/run counts.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const commands = { unit: "npm test", slow: "npm run slow", parity: "npm run parity" };
const [tier, ...args] = process.argv.slice(2);

const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
const reports = ["--reporter=default", "--reporter=json", `--outputFile.json=.cache/tests/${tier}.json`];
const projects = [`--project=${tier}`, `--project=${tier}-alone`];
const { status } = spawnSync(process.execPath, [vitest, "run", ...projects, ...reports, ...args], {
  cwd: root,
  stdio: "inherit",
});
const others = Object.entries(commands).filter(([name]) => name !== tier);
const leftOut = others.map(([name, command]) => `${name} tests (${command})`).join(" and ");
console.log(`These were the ${tier} tests. Left out: ${leftOut}; .ci/run runs all.`);
process.exitCode = status ?? 1;
