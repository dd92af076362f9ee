// Publishes the packages, or proves that they can be published.
// Usage: npm run release -- --dry-run [--node 20,22,24] [--no-trials]
//          publishes to a registry on this machine, installs every package from it into an empty project, prints what each
//          installation brings, bundles them for browsers, and runs there the demo, the README's ten lines, `model.fit` and the
//          code of every package's README
//        npm run release -- --version    applies the changesets: versions and changelogs
//        npm run release -- --publish    publishes what the registry of npm does not have
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Missing, root, runToEnd } from "../steps.mjs";
import { bundleForBrowsers } from "./browser-bundles.mjs";
import { runChangesets } from "./changesets.mjs";
import { startRegistry } from "./local-registry.mjs";
import { nodeOfVersion } from "./node-versions.mjs";
import { emptyProject, measureInstall, npm, publishAll, publishedPackages } from "./packages.mjs";
import { runTrials } from "./trials.mjs";

/** Megabytes on disk that installing a package may bring. */
const mostMegabytes = { "periodic-eval": 120 };
/** The stated size may differ by this share: newer releases of libraries change it. */
const tolerance = 0.1;
const tfjs = "@tensorflow/tfjs@^4.22.0";

const megabytes = (bytes) => bytes / 1e6;

/** Installs each package alone and prints what that brings. Returns the problems. */
function measureInstalls(packages, env) {
  const problems = [];
  console.log("\ninstalled alone            packages  MB of files  MB on disk  kB packed");
  for (const one of packages) {
    const { packages: count, bytes, bytesOnDisk } = measureInstall(one, env);
    const onDisk = megabytes(bytesOnDisk);
    const cells = [
      String(count).padStart(8),
      megabytes(bytes).toFixed(1).padStart(11),
      onDisk.toFixed(1).padStart(10),
    ];
    console.log(
      `${one.name.padEnd(26)} ${cells.join("  ")}  ${(one.packedBytes / 1e3).toFixed(0).padStart(9)}`,
    );
    const most = mostMegabytes[one.name];
    if (most === undefined) continue;
    if (onDisk >= most)
      problems.push(
        `${one.name}: installing it brings ${onDisk.toFixed(1)} MB, expected less than ${most} MB`,
      );
    for (const file of ["README.md", `packages/${one.folder}/README.md`])
      problems.push(...statedSizeProblems(file, count, onDisk));
  }
  console.log("");
  return problems;
}

/** Compares the size in a README with the measured one. */
function statedSizeProblems(file, count, onDisk) {
  const line = `brings ${count} packages and ${Math.round(onDisk)} MB`;
  const stated = /brings\s+(\d+)\s+packages\s+and\s+(\d+)\s+MB/.exec(readFileSync(join(root, file), "utf8"));
  const isClose = (value, measured) => Math.abs(Number(value) - measured) <= tolerance * measured;
  return stated !== null && isClose(stated[1], count) && isClose(stated[2], onDisk)
    ? []
    : [`${file} says "${stated?.[0] ?? "nothing about the size"}", expected "${line}"`];
}

async function dryRun({ node, "no-trials": noTrials }) {
  const folder = join(root, ".cache", "release");
  const registry = await startRegistry(folder);
  const project = emptyProject();
  try {
    const packages = publishAll(publishedPackages(), join(folder, "tarballs"), registry.env);
    console.log(`published ${packages.length} packages to ${registry.url}`);
    const problems = measureInstalls(packages, registry.env);
    if (noTrials) return problems;
    npm(["install", ...packages.map(({ name }) => name), tfjs], project, registry.env);
    console.log(
      `npx periodic-eval ${npm(["exec", "--", "periodic-eval", "--version"], project, registry.env).trim()}`,
    );
    problems.push(...(await bundleForBrowsers(project)));
    for (const version of node.split(",")) {
      const found = nodeOfVersion(version);
      if (found !== null) problems.push(...runTrials(project, found));
    }
    return problems;
  } finally {
    registry.stop();
    rmSync(project, { recursive: true, force: true });
  }
}

/** Applies the changesets, and writes the new version where changesets does not know it. Returns the problems. */
function applyVersions() {
  runChangesets(["version"]);
  const problems = writeFields();
  npm(["install", "--package-lock-only"], root, process.env);
  return problems;
}

const { values } = parseArgs({
  options: {
    "dry-run": { type: "boolean" },
    version: { type: "boolean" },
    publish: { type: "boolean" },
    node: { type: "string", default: "20,22,24" },
    "no-trials": { type: "boolean", default: false },
  },
});

/** Writes or checks the shared fields of the packages. Returns the problems. */
function writeFields(...args) {
  const script = join(root, "scripts", "package-fields.mjs");
  const { status } = spawnSync(process.execPath, [script, ...args], { stdio: "inherit" });
  return status === 0 ? [] : ["the shared fields of the packages (above)"];
}

async function main() {
  const problems = values.version ? applyVersions() : writeFields("--check");
  if (problems.length === 0 && values.version) return;
  if (problems.length === 0 && values.publish) return runChangesets(["publish"]);
  if (problems.length === 0 && values["dry-run"]) problems.push(...(await dryRun(values)));
  else if (problems.length === 0)
    throw new Missing("npm run release", "no option", "--dry-run, --version or --publish", "Name one.");
  if (problems.length === 0) return console.log("every package installs and runs");
  console.error(`${problems.length} failed:\n${problems.join("\n")}`);
  process.exitCode = 1;
}

await runToEnd(main);
