// Runs a tier of tests, and names what it leaves out. Usage: node scripts/test.mjs unit|slow|parity [ARGUMENTS OF VITEST]
//                                                                    node scripts/test.mjs python [ARGUMENTS OF PYTEST]
//                                                                    node scripts/test.mjs count TIER…
// A tier writes .cache/tests/TIER.json. `count` reads these reports, prints their failures in short, then `N passed, N failed, N skipped` of all
// of them, and exits with 1 if a test failed, no test passed, or a tier has no report.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { runPythonTests } from "./python-tests.mjs";
import { root } from "./steps.mjs";

const commands = {
  unit: "npm test",
  slow: "npm run slow",
  parity: "npm run parity",
  python: "npm run python",
};
const [tier, ...args] = process.argv.slice(2);

function runTier() {
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const reports = ["--reporter=default", "--reporter=json", `--outputFile.json=.cache/tests/${tier}.json`];
  const projects = [`--project=${tier}`, `--project=${tier}-alone`];
  const { status } = spawnSync(process.execPath, [vitest, "run", ...projects, ...reports, ...args], {
    cwd: root,
    stdio: "inherit",
  });
  printEnd(status);
}

function printEnd(status) {
  const otherTiers = Object.entries(commands).filter(([name]) => name !== tier);
  const leftOut = otherTiers.map(([name, command]) => `${name} tests (${command})`).join(" and ");
  console.log(`These were the ${tier} tests. Left out: ${leftOut}; .ci/run runs all.`);
  process.exitCode = status ?? 1;
}

function count(tiers) {
  let [passed, failed, skipped] = [0, 0, 0];
  const shortened = (text) => text.split("\n").slice(0, 6).join("\n    ").slice(0, 1_000);
  function fail(where, message) {
    failed += 1;
    console.log(`failed: ${where}\n    ${shortened(message)}`);
  }

  for (const tier of tiers) {
    const report = `.cache/tests/${tier}.json`;
    if (!existsSync(report)) fail(`${tier} tests`, "they did not run to their end");
    for (const file of existsSync(report) ? JSON.parse(readFileSync(report, "utf8")).testResults : []) {
      const where = relative(process.cwd(), file.name);
      const before = failed;
      for (const { status, fullName, failureMessages } of file.assertionResults)
        if (status === "passed") passed += 1;
        else if (status === "failed") fail(`${where} > ${fullName}`, failureMessages?.[0] ?? "");
        else skipped += 1;
      // A file that failed to load reports no tests: it counts as one failure.
      if (file.status === "failed" && failed === before) fail(where, file.message ?? "");
    }
  }
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
}

if (tier === "count") count(args);
else if (tier === "python") printEnd(runPythonTests(args));
else runTier();
