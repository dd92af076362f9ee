import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { writeSampleRun } from "../run/sample-run.test-data.ts";
import { serveResults, type Serving } from "./serve-results.ts";

let serving: Serving;
const pages = withPages(async (folder) => {
  await writeSampleRun(join(folder, "run"));
  serving = await serveResults({ root: folder, port: 0 });
  return serving.address;
});
afterAll(() => serving.close());

it.skipIf(!hasBrowser)(
  "says that its server has ended, until the server runs again",
  async () => {
    const screen = { viewport: { width: 390, height: 844 }, colorScheme: "light" } as const;
    const { tab } = await pages.open(`${pages.address}?results_dir=run`, screen);
    const note = tab.locator(".lost");
    expect(await note.count()).toBe(0);
    await serving.close();
    // Browsers connect again after 5 s.
    const slow = { timeout: 30_000 };
    await expect.poll(() => note.count(), slow).toBe(1);
    expect(await note.textContent()).toMatch(
      /^Not connected: the server has ended or cannot be reached\. This page shows what it knew at \d\d:\d\d/,
    );
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
    const { port } = new URL(serving.address);
    serving = await serveResults({ root: pages.folder, port: Number(port) });
    await expect.poll(() => note.count(), slow).toBe(0);
    await tab.close();
  },
  60_000,
);
