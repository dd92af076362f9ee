// Prints the failures of a vitest JSON report in short, then `N passed, N failed, N skipped`.
// Usage: node scripts/count-tests.mjs REPORT
// Exits with 1 if a test failed, no test passed, or there is no report.
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";

const [report] = process.argv.slice(2);
const files = report && existsSync(report) ? JSON.parse(readFileSync(report, "utf8")).testResults : [];
const tests = files.flatMap((file) => file.assertionResults.map((test) => test.status));
// A file that failed to load reports no tests: it counts as one failure.
const unloaded = files.filter(
  (file) => file.status === "failed" && !file.assertionResults.some((t) => t.status === "failed"),
);

const passed = tests.filter((status) => status === "passed").length;
const failed = tests.filter((status) => status === "failed").length + unloaded.length;
const skipped = tests.length - passed - (failed - unloaded.length);

const shortened = (text) => text.split("\n").slice(0, 6).join("\n    ").slice(0, 1_000);
for (const file of files) {
  const place = relative(process.cwd(), file.name);
  for (const test of file.assertionResults.filter(({ status }) => status === "failed"))
    console.log(`failed: ${place} > ${test.fullName}\n    ${shortened(test.failureMessages?.[0] ?? "")}`);
}
for (const file of unloaded)
  console.log(`failed: ${relative(process.cwd(), file.name)}\n    ${shortened(file.message ?? "")}`);
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
