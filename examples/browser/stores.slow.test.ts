import { build } from "esbuild";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { hasBrowser, withPages } from "../../packages/dashboard/src/html/browser.test-data.ts";
import { bundleOptions } from "./build.ts";
import { serveFolder } from "./static-server.test-data.ts";
import type { CheckedStores } from "./stores.test-data.ts";

const pages = withPages(async (folder) => {
  if (!hasBrowser) return "";
  await build({
    ...bundleOptions,
    entryPoints: [fileURLToPath(new URL("stores.test-data.ts", import.meta.url))],
    outfile: join(folder, "stores.js"),
  });
  const page = `<!doctype html><link rel="icon" href="data:," /><script type="module" src="stores.js"></script>`;
  await writeFile(join(folder, "index.html"), page);
  return serveFolder(folder);
});
const screen = { viewport: { width: 800, height: 600 }, colorScheme: "light" } as const;

/** Calls a function of the page once it is defined. */
async function call<T>(expression: string): Promise<T> {
  const { tab } = await pages.open(pages.address, screen);
  await tab.waitForFunction("globalThis.checkStores");
  const result = await tab.evaluate(expression);
  await tab.close();
  return result as T;
}

describe.skipIf(!hasBrowser)("the snapshot store in a browser (needs Chromium)", () => {
  it.each([
    ["memory", false],
    ["IndexedDB", true],
  ])("passes its conformance suite in %s", async (_, isKept) => {
    const { checks, snapshots } = await call<CheckedStores>(`checkStores(${isKept})`);
    expect(checks.filter(([, error]) => error !== null)).toEqual([]);
    expect(checks.length).toBeGreaterThan(10);
    expect(snapshots[0]).toBeGreaterThan(10);
    expect(snapshots[1]).toBe(snapshots[0]);
  });

  it("loses no snapshot when its worker is ended while it writes", async () => {
    const rounds = 40;
    const found = await call<{
      readonly acknowledged: number;
      readonly steps: readonly number[];
      readonly problems: readonly unknown[];
    }>(`endWorkers(${rounds})`);
    expect(found.acknowledged).toBeGreaterThanOrEqual(rounds);
    expect(found.steps.slice(0, found.acknowledged)).toEqual([...Array(found.acknowledged).keys()]);
    expect(found.problems).toEqual([]);
  });
});
