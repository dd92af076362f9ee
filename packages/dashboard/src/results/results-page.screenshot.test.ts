import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { hasBrowser, openBrowser, openQuietly, screens } from "../browser.test-data.ts";
import { renderResults } from "./results-page.ts";
import { sampleResults } from "./sample-results.test-data.ts";
import { summarizeResults } from "./summarize-results.ts";

let [folder, file] = ["", ""];
let browser: Browser | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "results-"));
  file = join(folder, "index.html");
  await writeFile(file, renderResults(summarizeResults(sampleResults), join(folder, "metrics.json")));
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await rm(folder, { recursive: true });
});

it.skipIf(!hasBrowser).each(screens)(
  "opens from the file system, %s on a %s, without a request or a complaint",
  async (colorScheme, size, viewport) => {
    const { tab, complaints, requests } = await openQuietly(browser!, file, { viewport, colorScheme });
    expect(requests).toEqual([`file://${file}`]);
    expect(complaints).toEqual([]);
    // Nothing sticks out sideways, a long name neither.
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(viewport.width);
    // The first metric of a task stands beside the run's name without scrolling.
    const section = tab.locator("section", { has: tab.locator("h2", { hasText: "gsm8k" }) });
    const score = await section.locator("td.score").first().boundingBox();
    expect(score!.x + score!.width).toBeLessThanOrEqual(viewport.width);
    const name = await section.locator("tbody th").first().boundingBox();
    expect(name!.width).toBeLessThan(viewport.width / 2);
    // There is room for intervals on a desktop alone, and their ink is the page's.
    const plot = section.locator("svg").first();
    expect(await plot.isVisible()).toBe(size === "desktop");
    const ink = await tab.evaluate("getComputedStyle(document.querySelector('td.plot svg')).color");
    expect(ink).toBe(colorScheme === "light" ? "rgb(27, 29, 34)" : "rgb(232, 230, 225)");
    // Groups open without a script.
    await tab.locator("summary").first().click();
    expect(await tab.locator("details table").first().isVisible()).toBe(true);
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(viewport.width);
    await tab.close();
  },
);
