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

it.skipIf(!hasBrowser)(
  "says that the run of the page is gone, until its folder is back",
  async () => {
    const screen = { viewport: { width: 390, height: 844 }, colorScheme: "light" } as const;
    const { tab } = await pages.open(`${pages.address}?results_dir=run`, screen);
    const note = tab.locator(".lost");
    expect(await note.count()).toBe(0);
    const [run, renamed] = [join(pages.folder, "run"), join(pages.folder, "renamed")];
    await rename(run, renamed);
    const slow = { timeout: 30_000 };
    await expect.poll(() => note.count(), slow).toBe(1);
    expect(await note.textContent()).toMatch(
      /^This run is gone: its folder was renamed or deleted\. This page shows what it knew at \d\d:\d\d/,
    );
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
    await rename(renamed, run);
    await expect.poll(() => note.count(), slow).toBe(0);
    await tab.close();
  },
  60_000,
);
