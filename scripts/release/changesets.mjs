// Changesets, installed into .cache on the first use: it needs Node 22.11, and nobody needs it to work on the code.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { installedTool } from "../installed-tool.mjs";
import { installedModules, link, Missing, root } from "../steps.mjs";
import { nodeForTools } from "./node-versions.mjs";

const versions = { "@changesets/cli": "3.0.3", "@changesets/changelog-git": "1.0.0" };

/** Runs a command of changesets in the repository. */
export function runChangesets(args) {
  const tool = installedTool("changesets", versions, `release -- --${args[0]}`);
  const own = join(tool, "node_modules", "@changesets");
  // Its configuration names the package that writes the changelogs, which it looks up in the repository.
  link(join(installedModules, "@changesets"), own);
  const { status } = spawnSync(nodeForTools(), [join(own, "cli", "bin.js"), ...args], {
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
