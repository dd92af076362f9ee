// Prints `N passed, N failed, N skipped` from a vitest JSON report. Usage: node scripts/count-tests.mjs REPORT
// Exit code 1 where something failed, no test passed, or there is no report.
import { existsSync, readFileSync } from "node:fs";

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

console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
