// Tools of a release, installed into .cache on the first use: other versions of Node, and changesets.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { installedTool, Missing, installedModules, link, root } from "../steps.mjs";

const system = process.platform === "win32" ? "win" : process.platform;
const present = process.versions.node;

/** Returns the path of a Node that runs tools which need Node 22. Throws a Missing if there is none. */
function nodeForTools() {
  const path = Number(present.split(".")[0]) >= 22 ? process.execPath : nodeOfVersion("22")?.path;
  if (path !== undefined) return path;
  throw new Missing("npm run release", `Node ${present}`, "Node 22 or newer", "Run it with a newer Node.");
}

/** Returns name and path of a Node of the major version: the present one, or one installed into .cache. Null with a message if there is none. */
export function nodeOfVersion(major) {
  if (present.split(".")[0] === major) return { version: present, path: process.execPath };
  const name = `node-${system}-${process.arch}`;
  try {
    const folder = installedTool(`node-${major}`, { [name]: major }, "release -- --dry-run");
    const path = join(
      folder,
      "node_modules",
      name,
      "bin",
      process.platform === "win32" ? "node.exe" : "node",
    );
    const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8" });
    if (stdout?.startsWith(`v${major}.`)) return { version: stdout.trim().slice(1), path };
    console.log(`not run on Node ${major}: ${name} does not start here`);
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    console.log(`not run on Node ${major}: ${error.message}`);
  }
  return null;
}

const versions = { "@changesets/cli": "3.0.3", "@changesets/changelog-git": "1.0.0" };

/** Runs a command of changesets in the repository. */
export function runChangesets(args) {
  const tool = installedTool("changesets", versions, `release -- --${args[0]}`);
  const changesets = join(tool, "node_modules", "@changesets");
  // Its configuration names the package that writes the changelogs, which it looks up in the repository.
  link(join(installedModules, "@changesets"), changesets);
  const { status } = spawnSync(nodeForTools(), [join(changesets, "cli", "bin.js"), ...args], {
    cwd: root,
    stdio: "inherit",
  });
  if (status !== 0)
    throw new Missing(
      `changeset ${args.join(" ")}`,
      `exit status ${status}`,
      "success",
      "Read its message above.",
    );
}
