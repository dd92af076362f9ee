// Prints the failures of the named tiers of tests in short, then `N passed, N failed, N skipped` of all of them.
// Usage: node scripts/count-tests.mjs TIER…     reads .cache/tests/TIER.json
// Exits with 1 if a test failed, no test passed, or a tier has no report.
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";

let [passed, failed, skipped] = [0, 0, 0];
const shortened = (text) => text.split("\n").slice(0, 6).join("\n    ").slice(0, 1_000);
function fail(where, message) {
  failed += 1;
  console.log(`failed: ${where}\n    ${shortened(message)}`);
}

for (const tier of process.argv.slice(2)) {
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
