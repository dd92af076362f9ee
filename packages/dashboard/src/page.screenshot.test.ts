import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { hasBrowser, openBrowser, openQuietly, screens } from "./browser.test-data.ts";
import { writeSampleRun } from "./sample-run.test-data.ts";
import { writePage } from "./write-page.ts";

let [runDir, file] = ["", ""];
let browser: Browser | undefined;
beforeAll(async () => {
  runDir = await mkdtemp(join(tmpdir(), "screenshot-"));
  await writeSampleRun(runDir);
  file = await writePage(runDir);
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await rm(runDir, { recursive: true });
});

it.skipIf(!hasBrowser).each(screens)(
  "opens from the file system, %s on a %s, without a request or a complaint",
  async (colorScheme, size, viewport) => {
    const { tab, complaints, requests } = await openQuietly(browser!, file, { viewport, colorScheme });
    expect(requests).toEqual([`file://${file}`]);
    expect(complaints).toEqual([]);
    // Nothing sticks out sideways.
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(viewport.width);
    // One of the two drawings is shown, and it fills its panel.
    expect(await tab.locator(".wide svg").isVisible()).toBe(size === "desktop");
    const chart = await tab.locator(size === "desktop" ? ".wide svg" : ".narrow svg").boundingBox();
    expect(chart!.width).toBeGreaterThan(viewport.width * 0.7);
    // The scheme reaches the drawing: its ink is the page's.
    const ink = await tab.evaluate("getComputedStyle(document.querySelector('figure svg')).color");
    expect(ink).toBe(colorScheme === "light" ? "rgb(27, 29, 34)" : "rgb(232, 230, 225)");
    await tab.close();
  },
);
