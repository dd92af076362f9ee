// Shared by the scripts: commands, steps with their time, folders, links, and errors that stop with advice. Optional backends and VitePress are
// installed in folders of .cache; node_modules gets links, which `npm ci` and `npm install` remove and a second run restores. No dependencies.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const installedModules = join(root, "node_modules");
/** The Python with benchmarks/peers/requirements.txt and packages/python/requirements.txt. */
export const peersPython =
  process.env.PERIODIC_EVAL_PEERS_PYTHON ?? join(root, ".cache", "peers", "bin", "python");

/** An error that stops the script, in the format of the library's errors. */
export class Missing extends Error {
  constructor(where, got, expected, fix) {
    super(`[periodic-eval] ${where}: got ${got}, expected ${expected}. ${fix}`);
  }
}

/** Runs an installer; on failure prints the error's one-line message. */
export async function runToEnd(main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}

/** Runs a command and returns its output. If it fails, throws what `missing` makes of its last output. */
export function run(command, args, missing, options = {}) {
  const result = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 26, ...options });
  if (result.status === 0) return result.stdout;
  const said = (result.error?.message ?? `${result.stderr}\n${result.stdout}`).trim().split("\n");
  const errors = said.filter((line) => /error/i.test(line));
  throw missing((errors[0] ?? said.at(-1) ?? `exit status ${result.status}`).trim());
}

/**
 * On Windows `npm` is a .cmd file: only a shell can start it, and that shell changes arguments with spaces or `^`. So the scripts run
 * npm's JavaScript with Node. `npm run` sets the variable; Node's installers put npm beside Node.
 */
const places = [
  process.env.npm_execpath,
  join(dirname(process.execPath), "node_modules", "npm", "bin", "npm-cli.js"),
  join(dirname(process.execPath), "..", "lib", "node_modules", "npm", "bin", "npm-cli.js"),
];

/** Returns the program and the arguments that run npm with `args`, for `spawn`. */
export function npmCommand(args) {
  const npmCli = places.find((path) => path && basename(path) === "npm-cli.js" && existsSync(path));
  return npmCli === undefined ? ["npm", args] : [process.execPath, [npmCli, ...args]];
}

/** @param script The npm script to repeat. */
export function npm(args, what, script) {
  const missing = (got) =>
    new Missing(
      what,
      got,
      "a package from the npm registry",
      `Check the network and \`npm config get registry\`, then run \`npm run ${script}\` again.`,
    );
  return run(...npmCommand([...args, "--no-audit", "--no-fund", "--loglevel=error"]), missing);
}

/** Runs a step unless the file that it makes exists. */
export function step(what, isDone, make) {
  if (isDone) return;
  const started = performance.now();
  make();
  console.log(`${what} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}

/** Builds a folder under a temporary name first, so that an interrupted run leaves nothing that looks complete. */
export function makeFolder(folder, make) {
  mkdirSync(dirname(folder), { recursive: true });
  const made = mkdtempSync(join(dirname(folder), "making-"));
  try {
    const whole = make(made);
    rmSync(folder, { recursive: true, force: true });
    renameSync(whole, folder);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

export function checkInstalled() {
  if (existsSync(join(installedModules, "@tensorflow", "tfjs"))) return;
  throw new Missing(installedModules, "no @tensorflow/tfjs", "the installed project", "Run `npm ci`.");
}

/** @param installed The folder from which imports load it. */
export function link(installed, made) {
  rmSync(installed, { recursive: true, force: true });
  // Junctions need no privileges on Windows; other systems ignore the type.
  const target = process.platform === "win32" ? made : relative(dirname(installed), made);
  symlinkSync(target, installed, "junction");
}

const manifestOf = (dependencies) => `${JSON.stringify({ private: true, dependencies }, null, 2)}\n`;

/** Prints how fast a folder grows while `install` fills it. */
export function showGrowth(folder, megabytes, install) {
  const size = megabytes === undefined ? [] : [String(megabytes)];
  const watcher = spawn(process.execPath, [join(root, "scripts", "growth.mjs"), folder, ...size], {
    stdio: ["ignore", "inherit", "ignore"],
  });
  try {
    return install();
  } finally {
    watcher.kill();
  }
}

/**
 * Installs exact versions of npm's packages, whole or not at all.
 *
 * @param script The npm script to repeat if the registry cannot be reached.
 * @param flags More flags for `npm install`.
 * @param megabytes The size of the whole installation, from which the time left follows.
 * @param finish Returns the folder that becomes `folder`, from the one with package.json and node_modules.
 * @throws Missing if npm cannot install them.
 */
export function installInto(
  folder,
  packages,
  script,
  { flags = [], megabytes, finish = (made) => made } = {},
) {
  makeFolder(folder, (made) => {
    writeFileSync(join(made, "package.json"), manifestOf(packages));
    const fixed = ["--prefix", made, "--ignore-scripts", "--no-package-lock"];
    const what = Object.keys(packages).join(" and ");
    showGrowth(made, megabytes, () => npm(["install", ...fixed, ...flags], what, script));
    return finish(made);
  });
}

/**
 * Installs packages of npm into a folder of `.cache/tools/NAME` unless they are there, and returns that folder. Its name contains a
 * hash of the versions, so that a changed one is installed again.
 *
 * @param packages Exact versions by name.
 * @param script The npm script to repeat if the registry cannot be reached.
 * @param flags More flags for `npm install`.
 * @throws Missing if npm cannot install them.
 */
export function installedTool(name, packages, script, { flags = [] } = {}) {
  const manifest = manifestOf(packages);
  const versions = Object.entries(packages).map(
    ([name, version]) => `${name.replaceAll("/", "-")}-${version}`,
  );
  const hash = createHash("sha256").update(manifest).digest("hex").slice(0, 8);
  const folder = join(root, ".cache", "tools", name, `${versions.join("_")}-${hash}`);
  if (existsSync(join(folder, "node_modules"))) return folder;
  installInto(folder, packages, script, { flags });
  return folder;
}
