// Installs what is missing and builds what is stale, so that `npm start` and `npm test` work on a fresh clone. Passes its arguments to
// build.mjs.
// No dependencies: it runs before there are any.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { npmCommand, root } from "./steps.mjs";

function refuseOldNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  console.error(
    `[periodic-eval] setup: got Node ${process.versions.node}, expected 20.19 or newer. Install a newer Node.`,
  );
  process.exit(1);
}

const lockedPackages = (file) => JSON.parse(readFileSync(file, "utf8")).packages;

/** Whether every locked package is installed in its locked version, and each of ours is linked (packages for other platforms may be absent). */
function isInstalled() {
  const hidden = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(hidden)) return false;
  const installed = lockedPackages(hidden);
  return Object.entries(lockedPackages(join(root, "package-lock.json")))
    .filter(([path]) => path.startsWith("node_modules/"))
    .every(([path, { version, optional, link }]) => {
      if (link) return existsSync(join(root, path));
      return installed[path] ? installed[path].version === version : optional;
    });
}

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  if (error) console.error(`[periodic-eval] setup: ${command} did not start: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

refuseOldNode();
if (!isInstalled()) {
  console.log("installing dependencies (npm ci) …");
  run(...npmCommand(["ci", "--no-audit", "--no-fund", "--loglevel=error"]));
}
run(process.execPath, [join(root, "scripts", "build.mjs"), ...process.argv.slice(2)]);
