import { expect, it } from "vitest";
import { hasBrowser, opensQuietly, withPages } from "../html/browser.test-data.ts";
import { writeSampleFeedback } from "./sample-feedback.test-data.ts";
import { writeFeedback } from "./write-feedback.ts";

let plots: readonly string[] = [];
const pages = withPages(async (folder) => {
  await writeSampleFeedback(folder);
  const written = await writeFeedback(folder);
  plots = written.plots;
  return `file://${written.page}`;
});

opensQuietly(pages, "figure svg", async ({ tab, size, width }) => {
  // Nothing sticks out sideways, an attack in an answer neither.
  for (const summary of await tab.locator("summary").all()) await summary.click();
  expect(await tab.locator("details pre").first().isVisible()).toBe(true);
  // Drawings stand in rows on a desktop, below each other on a phone, where they are as wide as it.
  const charts = tab.locator(".panel svg");
  const [first, second] = [await charts.nth(0).boundingBox(), await charts.nth(1).boundingBox()];
  expect(first!.y === second!.y).toBe(size === "desktop");
  if (size === "phone") expect(first!.width).toBeGreaterThan(width * 0.7);
});

it.skipIf(!hasBrowser).each(["light", "dark"] as const)(
  "the drawings are files that a browser shows, by %s",
  async (colorScheme) => {
    const drawings = plots.filter((plot) => plot.endsWith(".svg"));
    // All by day; at night the colours alone differ.
    for (const plot of colorScheme === "light" ? drawings : drawings.slice(0, 1)) {
      const viewport = { width: 400, height: 300 };
      const { tab, messages } = await pages.open(`file://${plot}`, { viewport, colorScheme });
      expect(messages).toEqual([]);
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
