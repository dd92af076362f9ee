import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "./doc-blocks.test-data.ts";

it("finds no broken link, command, configuration or type error in the docs", async () => {
  const script = join(root, "scripts", "docs", "check-pages.mjs");
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [script]).catch(
    (error: { readonly stdout: string; readonly stderr: string }) => error,
  );
  expect(stderr).toBe("");
  const counts = stdout.match(/\d+/g)?.map(Number) ?? [];
  // Links, links in the repository, code blocks, commands, YAML blocks: a check that finds nothing to check would pass.
  for (const [at, least] of [1000, 150, 25, 90, 15].entries()) expect(counts[at]).toBeGreaterThan(least);
});
