import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { hasBrowser, openBrowser, openQuietly, screens } from "../browser.test-data.ts";
import { writeSampleFeedback } from "./sample-feedback.test-data.ts";
import { writeFeedback } from "./write-feedback.ts";

let [output, file] = ["", ""];
let plots: readonly string[] = [];
let browser: Browser | undefined;
beforeAll(async () => {
  output = await mkdtemp(join(tmpdir(), "feedback-"));
  await writeSampleFeedback(output);
  ({ page: file, plots } = await writeFeedback(output));
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await rm(output, { recursive: true });
});

it.skipIf(!hasBrowser).each(screens)(
  "opens from the file system, %s on a %s, without a request or a complaint",
  async (colorScheme, size, viewport) => {
    const { tab, complaints, requests } = await openQuietly(browser!, file, { viewport, colorScheme });
    expect(requests).toEqual([`file://${file}`]);
    expect(complaints).toEqual([]);
    // Nothing sticks out sideways, an attack in an answer neither.
    for (const summary of await tab.locator("summary").all()) await summary.click();
    expect(await tab.locator("details pre").first().isVisible()).toBe(true);
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(viewport.width);
    // Drawings stand in rows on a desktop, below each other on a phone, where they are as wide as it.
    const charts = tab.locator(".panel svg");
    const [first, second] = [await charts.nth(0).boundingBox(), await charts.nth(1).boundingBox()];
    expect(first!.y === second!.y).toBe(size === "desktop");
    if (size === "phone") expect(first!.width).toBeGreaterThan(viewport.width * 0.7);
    const ink = await tab.evaluate("getComputedStyle(document.querySelector('figure svg')).color");
    expect(ink).toBe(colorScheme === "light" ? "rgb(27, 29, 34)" : "rgb(232, 230, 225)");
    await tab.close();
  },
);

it.skipIf(!hasBrowser).each(["light", "dark"] as const)(
  "the drawings are files that a browser shows, by %s",
  async (colorScheme) => {
    const drawings = plots.filter((plot) => plot.endsWith(".svg"));
    // All by day; at night the colours alone differ.
    for (const plot of colorScheme === "light" ? drawings : drawings.slice(0, 1)) {
      const viewport = { width: 400, height: 300 };
      const { tab, complaints } = await openQuietly(browser!, plot, { viewport, colorScheme });
      expect(complaints).toEqual([]);
      // A file that is no XML has an error's element instead.
      expect(
        await tab.evaluate(
          "document.documentElement.tagName + document.getElementsByTagName('parsererror').length",
        ),
      ).toBe("svg0");
      const paper = await tab.evaluate("getComputedStyle(document.querySelector('rect')).fill");
      expect(paper).toBe(colorScheme === "light" ? "rgb(255, 255, 255)" : "rgb(26, 29, 34)");
      await tab.close();
    }
  },
);
