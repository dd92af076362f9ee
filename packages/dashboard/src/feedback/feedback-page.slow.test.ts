import { expect, it } from "vitest";
import { hasBrowser, testOpensWithoutRequests, withPages } from "../html/browser.test-data.ts";
import { writeSampleFeedback } from "./sample-feedback.test-data.ts";
import { writeFeedback } from "./write-feedback.ts";

let plots: readonly string[] = [];
const pages = withPages(async (folder) => {
  await writeSampleFeedback(folder);
  const written = await writeFeedback(folder);
  plots = written.plots;
  return `file://${written.page}`;
});

testOpensWithoutRequests(pages, "figure svg", async ({ tab, size, width }) => {
  // Nothing overflows sideways, not even hostile text in an answer.
  for (const summary of await tab.locator("summary").all()) await summary.click();
  expect(await tab.locator("details pre").first().isVisible()).toBe(true);
  // Charts are side by side on a desktop, and one per row in full width on a phone.
  const charts = tab.locator(".panel svg");
  const [first, second] = [await charts.nth(0).boundingBox(), await charts.nth(1).boundingBox()];
  expect(first!.y === second!.y).toBe(size === "desktop");
  if (size === "phone") expect(first!.width).toBeGreaterThan(width * 0.7);
});

it.skipIf(!hasBrowser).each(["light", "dark"] as const)(
  "writes SVG files that a browser displays in %s mode",
  async (colorScheme) => {
    const drawings = plots.filter((plot) => plot.endsWith(".svg"));
    // In dark mode only colours differ.
    for (const plot of colorScheme === "light" ? drawings : drawings.slice(0, 1)) {
      const viewport = { width: 400, height: 300 };
      const { tab, messages } = await pages.open(`file://${plot}`, { viewport, colorScheme });
      expect(messages).toEqual([]);
      // Invalid XML would contain a parsererror element.
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
