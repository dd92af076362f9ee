// Prints `N passed, N failed, N skipped` from a vitest JSON report, before it what failed and why, in short.
// Usage: node scripts/count-tests.mjs REPORT
// Exit code 1 where something failed, no test passed, or there is no report.
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";

const [report] = process.argv.slice(2);
const files = report && existsSync(report) ? JSON.parse(readFileSync(report, "utf8")).testResults : [];
const tests = files.flatMap((file) => file.assertionResults.map((test) => test.status));
// A file that could not even be loaded holds no test: it counts as one failure.
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
