import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkSdk } from "./sdk-version.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

/** Returns the `require` of a module next to which this version of the SDK is installed. */
async function requireWith(version: string | null): Promise<NodeJS.Require> {
  const folder = temporaryFolder();
  const sdk = join(folder, "node_modules", "@wandb", "sdk");
  await mkdir(sdk, { recursive: true });
  if (version !== null)
    await writeFile(join(sdk, "package.json"), JSON.stringify({ name: "@wandb/sdk", version }));
  return createRequire(join(folder, "index.js"));
}

it.each([
  ["0.6.0", "@wandb/sdk 0.6.0"],
  ["0.5.2", "@wandb/sdk 0.5.2"],
  [null, "no package @wandb/sdk"],
])("rejects version %s of the SDK and names the one to install", async (version, got) => {
  const require = await requireWith(version);
  expect(() => checkSdk(require)).toThrow(
    `[periodic-eval] wandbLogger SDK: got ${got}, expected version 0.5.1. Install version 0.5.1: npm install @wandb/sdk@0.5.1.`,
  );
});

it("accepts the known version, which is also the installed one", async () => {
  const known = await requireWith("0.5.1");
  expect(() => checkSdk(known)).not.toThrow();
  expect(() => checkSdk(createRequire(import.meta.url))).not.toThrow();
});
