import { rename } from "node:fs/promises";
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

const moveRun = (from: string, to: string) => rename(join(pages.folder, from), join(pages.folder, to));

it.skipIf(!hasBrowser).each([
  {
    what: "the run of the page is gone, until its folder is back",
    note: /^This run is gone: its folder was renamed or deleted\. This page shows what it knew at \d\d:\d\d/,
    lose: () => moveRun("run", "renamed"),
    restore: () => moveRun("renamed", "run"),
  },
  {
    what: "its server has ended, until the server runs again",
    note: /^Not connected: the server has ended or cannot be reached\. This page shows what it knew at \d\d:\d\d/,
    lose: () => serving.close(),
    restore: async () => {
      const { port } = new URL(serving.address);
      serving = await serveResults({ root: pages.folder, port: Number(port) });
    },
  },
])(
  "says that $what",
  async ({ note, lose, restore }) => {
    const screen = { viewport: { width: 390, height: 844 }, colorScheme: "light" } as const;
    const { tab } = await pages.open(`${pages.address}?results_dir=run`, screen);
    const shown = tab.locator(".lost");
    expect(await shown.count()).toBe(0);
    await lose();
    // Browsers connect again after 5 s.
    const slow = { timeout: 30_000 };
    await expect.poll(() => shown.count(), slow).toBe(1);
    expect(await shown.textContent()).toMatch(note);
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
    await restore();
    await expect.poll(() => shown.count(), slow).toBe(0);
    await tab.close();
  },
  60_000,
);
