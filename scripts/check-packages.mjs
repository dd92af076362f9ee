// Checks the published form of every package: fields and files (publint), and types as each resolution of TypeScript finds them
// (Are the Types Wrong). Packs all packages at once: loading npm and TypeScript again for each takes longer than the checks.
// Usage: node scripts/check-packages.mjs
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { npmCommand, root } from "./steps.mjs";

/** The packages are for ES modules and Node's or a bundler's resolution. */
const ignoredResolutions = ["node10", "node16-cjs"];

const folder = mkdtempSync(join(tmpdir(), "packed-"));
try {
  const [npm, args] = npmCommand(["pack", "--workspaces", "--ignore-scripts", "--pack-destination", folder]);
  const packed = spawnSync(npm, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "ignore", "pipe"] });
  if (packed.status !== 0) throw new Error(`npm pack failed: ${packed.stderr}`);
  for (const file of readdirSync(folder)) {
    const tarball = new Uint8Array(readFileSync(join(folder, file)));
    const { messages, pkg } = await publint({ pack: { tarball: tarball.buffer }, strict: true });
    const { problems = [] } = await checkPackage(createPackageFromTarballData(tarball));
    const wrong = [
      ...messages.map((message) => formatMessage(message, pkg)),
      ...problems
        .filter(({ resolutionKind }) => !ignoredResolutions.includes(resolutionKind))
        .map((problem) => JSON.stringify(problem)),
    ];
    for (const problem of wrong) console.error(`${pkg.name}: ${problem}`);
    if (wrong.length > 0) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
