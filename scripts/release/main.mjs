// Publishes the packages, or proves that they can be published.
// Usage: npm run release -- --dry-run [--node 20,22,24] [--python 3.10,3.11,3.12,3.13] [--no-trials]
//          packs every package, installs each from a registry on loopback into an empty project, prints what each installation
//          brings, bundles them for browsers, and runs there the demo, the README's ten lines, `model.fit` and the code of every
//          package's README; builds the wheel, installs it for each Python, and reads the run of the demo with it
//        npm run release -- --version    applies the changesets: versions and changelogs
//        npm run release -- --publish    publishes what the registry of npm does not have
import { spawnSync } from "node:child_process";
import { lstatSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Missing, root, run, runToEnd, npmCommand } from "../steps.mjs";
import { serveRegistries } from "./registries.mjs";
import { bundleForBrowsers, runPythonTrial, runTrials } from "./trials.mjs";
import { runChangesets, nodeOfVersion } from "./tools.mjs";
import { tmpdir } from "node:os";

const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
/** Disks store files in blocks of this size. */
const block = 4096;

/** Runs npm in a folder. Throws a Missing with its first error. */
function npm(args, cwd) {
  const failed = (got) =>
    new Missing(`npm ${args.join(" ")}`, got, "success", "Correct the package, then repeat this.");
  return run(...npmCommand([...quiet, ...args]), failed, { cwd });
}

/** Packs every package into a folder. Returns each with its manifest, tarball and packed bytes, in alphabetical order. */
function packAll(folder) {
  const packed = npm(
    ["pack", "--workspaces", "--json", "--ignore-scripts", "--pack-destination", folder],
    root,
  );
  return JSON.parse(packed).map(({ name, filename, size }) => ({
    name,
    manifest: JSON.parse(
      readFileSync(join(root, "node_modules", ...name.split("/"), "package.json"), "utf8"),
    ),
    tarball: join(folder, filename),
    packedBytes: size,
  }));
}

/**
 * Installs packages from a registry into an empty project. It lies outside of the repository, so that no import finds the repository's
 * modules.
 */
function installedProject(installed, registry, extra = {}) {
  const project = mkdtempSync(join(tmpdir(), "periodic-eval-release-"));
  const dependencies = Object.fromEntries(installed.map(({ manifest }) => [manifest.name, manifest.version]));
  const manifest = { private: true, type: "module", dependencies: { ...dependencies, ...extra } };
  writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
  npm(["install", "--registry", registry], project);
  return project;
}

/** Installs a package alone. Returns the number of packages and the size of all files that this brings. */
function measureInstall(packed, registry) {
  const project = installedProject([packed], registry);
  try {
    const { packages: locked } = JSON.parse(readFileSync(join(project, "package-lock.json"), "utf8"));
    const sizes = filesBelow(join(project, "node_modules"));
    return {
      packages: Object.keys(locked).length - 1,
      bytes: sizes.reduce((sum, size) => sum + size, 0),
      bytesOnDisk: sizes.reduce((sum, size) => sum + Math.ceil(size / block) * block, 0),
    };
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

const filesBelow = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => lstatSync(join(entry.parentPath, entry.name)).size);

/** Megabytes on disk that installing a package may bring. */
const mostMegabytes = { "periodic-eval": 120 };
/** The stated size may differ by this share: newer releases of libraries change it. */
const tolerance = 0.1;
const tfjs = { "@tensorflow/tfjs": "^4.22.0" };

const megabytes = (bytes) => bytes / 1e6;

/** Installs each package alone and prints what that brings. Returns the problems. */
function measureInstalls(packages, registry) {
  const problems = [];
  console.log("\ninstalled alone            packages  MB of files  MB on disk  kB packed");
  for (const packed of packages) {
    const { packages: count, bytes, bytesOnDisk } = measureInstall(packed, registry);
    const onDisk = megabytes(bytesOnDisk);
    const cells = [
      String(count).padStart(8),
      megabytes(bytes).toFixed(1).padStart(11),
      onDisk.toFixed(1).padStart(10),
    ];
    console.log(
      `${packed.name.padEnd(26)} ${cells.join("  ")}  ${(packed.packedBytes / 1e3).toFixed(0).padStart(9)}`,
    );
    const most = mostMegabytes[packed.name];
    if (most === undefined) continue;
    if (onDisk >= most)
      problems.push(
        `${packed.name}: installing it brings ${onDisk.toFixed(1)} MB, expected less than ${most} MB`,
      );
    for (const file of ["README.md", "packages/cli/README.md"])
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

async function dryRun({ node, python, "no-trials": noTrials }) {
  const folder = mkdtempSync(join(tmpdir(), "periodic-eval-packed-"));
  let [project, registries] = [null, null];
  try {
    const packages = packAll(folder);
    const upstream = npm(["config", "get", "registry"], root).trim();
    registries = await serveRegistries({ packages, wheels: [buildWheel()], upstream });
    const problems = measureInstalls(packages, registries.npm);
    if (noTrials) return problems;
    project = installedProject(packages, registries.npm, tfjs);
    console.log(`npx periodic-eval ${npm(["exec", "--", "periodic-eval", "--version"], project).trim()}`);
    problems.push(...(await bundleForBrowsers(project)));
    for (const version of node.split(",")) {
      const nodePath = nodeOfVersion(version);
      if (nodePath !== null) problems.push(...runTrials(project, nodePath));
    }
    for (const version of (python ?? "3.10,3.11,3.12,3.13").split(","))
      problems.push(...runPythonTrial(project, version, registries.python, python !== undefined));
    return problems;
  } finally {
    await registries?.close();
    for (const made of [folder, project]) if (made !== null) rmSync(made, { recursive: true, force: true });
  }
}

/** Builds the wheel and returns its path. */
function buildWheel() {
  const failed = (got) => new Missing("npm run wheel", got, "a wheel", "Run it for the whole message.");
  run(process.execPath, [join(root, "scripts", "wheel.mjs")], failed);
  const wheels = join(root, ".build", "wheel");
  return join(wheels, readdirSync(wheels)[0]);
}

/** Applies the changesets, and writes the new version where changesets does not know it. Returns the problems. */
function applyVersions() {
  runChangesets(["version"]);
  const problems = writeFields();
  npm(["install", "--package-lock-only"], root);
  return problems;
}

const { values } = parseArgs({
  options: {
    "dry-run": { type: "boolean" },
    version: { type: "boolean" },
    publish: { type: "boolean" },
    node: { type: "string", default: "20,22,24" },
    python: { type: "string" },
    "no-trials": { type: "boolean", default: false },
  },
});

/** Writes or checks the shared fields of the packages. Returns the problems. */
function writeFields(...args) {
  const script = join(root, "scripts", "package-fields.mjs");
  const { status } = spawnSync(process.execPath, [script, ...args], { stdio: "inherit" });
  return status === 0 ? [] : ["the shared fields of the packages (above)"];
}

/** Returns the pages that say that nothing is published yet. They are published with the packages. */
const outdatedPages = () =>
  ["README.md", "docs/index.md", "docs/install.md"]
    .filter((file) => /version [\d.]+ is (not )?published/i.test(readFileSync(join(root, file), "utf8")))
    .map(
      (file) =>
        `${file} says that the version is not published. Remove the sentence in the commit that publishes it.`,
    );

async function main() {
  const problems = values.version ? applyVersions() : writeFields("--check");
  if (values.publish) problems.push(...outdatedPages());
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
