// Runs a TypeScript file of examples/ or benchmarks/ by the beginning of its name. Examples use the packages' source; benchmarks
// use the built packages, which tsx does not instrument.
// Usage: node scripts/run.mjs FOLDER NAME [arguments …]     (npm run example 01, npm run bench overhead)
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "./steps.mjs";

const [folder, name, ...args] = process.argv.slice(2);
const files = readdirSync(join(root, folder)).filter((file) => /^[^.]+\.ts$/.test(file));
const matches = files.filter((file) => name && file.startsWith(name));

if (matches.length !== 1) {
  console.error(
    `[periodic-eval] ${folder}: got ${name ?? "no name"}, expected one of ${files.join(", ")}. Name one.`,
  );
  process.exit(2);
}
const tsx = join(root, "node_modules", "tsx", "dist", "cli.mjs");
const condition = folder === "benchmarks" ? [] : ["-C", "@periodic-eval/source"];
const { status } = spawnSync(process.execPath, [tsx, ...condition, join(root, folder, matches[0]), ...args], {
  stdio: "inherit",
});
process.exit(status ?? 1);
