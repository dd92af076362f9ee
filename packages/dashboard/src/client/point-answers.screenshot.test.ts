import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readRun } from "@periodic-eval/core/snapshots";
import axe from "axe-core";
import type { Locator, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { readAnswers } from "../answers/read-answers.ts";
import { writeSampleAnswers } from "../answers/sample-answers.test-data.ts";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { renderPage } from "../run/run-page.ts";
import { writePage } from "../run/write-page.ts";

/** A run of two phases, em and later, with steps 0, 20 and 40 each and another value in each. */
const pages = withPages(async (folder) => {
  await writeSampleAnswers(folder);
  await writeSampleAnswers(folder, undefined, (snapshot) => ({
    ...snapshot,
    phase: "later",
    run_step: snapshot.run_step + 40,
    metrics: { accuracy: { ...snapshot.metrics["accuracy"]!, value: 0.2, ci95: [0.1, 0.3] } },
    created_at: "2026-01-02T00:00:00.000Z",
  }));
  return `file://${await writePage(folder)}`;
});

const desktop = { viewport: { width: 1280, height: 900 }, colorScheme: "light" } as const;
const chartOf = (tab: Page): Locator => tab.locator("svg[data-curve='alignment/accuracy']:visible").first();
/** The points in the order of the run. */
const pointsOf = (chart: Locator): Locator => chart.locator('g[fill="transparent"] > circle');
const shown = (tab: Page): Promise<string> =>
  tab.evaluate("decodeURIComponent(location.hash) + ' ' + document.activeElement.id");
const answersOf = (step: number, phase = "em"): string =>
  `#answers?phase=${phase}&id=alignment&step=${step} all-answers`;

describe.skipIf(!hasBrowser)("a point of a chart", () => {
  it("opens the answers of its measurement at a click, again from the same address", async () => {
    const { tab, requests, messages } = await pages.open(pages.address, desktop);
    const point = pointsOf(chartOf(tab)).nth(1);
    await point.hover();
    expect(await point.evaluate((circle) => getComputedStyle(circle).cursor)).toBe("pointer");
    for (const _ of ["first", "again"]) {
      await point.click();
      await expect.poll(() => shown(tab)).toBe(answersOf(20));
      expect(await tab.locator("#answers label", { hasText: "Step" }).locator("select").inputValue()).toBe(
        "20",
      );
      await tab.locator("h1").click();
    }
    expect(requests).toEqual([pages.address]);
    expect(messages).toEqual([]);
    await tab.close();
  });

  it("opens the answers of its own phase where one phase ends and the next begins", async () => {
    const { tab } = await pages.open(pages.address, desktop);
    const chart = chartOf(tab);
    expect(await pointsOf(chart).count()).toBe(6);
    await pointsOf(chart).nth(2).click();
    await expect.poll(() => shown(tab)).toBe(answersOf(40));
    await pointsOf(chart).nth(3).click();
    await expect.poll(() => shown(tab)).toBe(answersOf(0, "later"));
    await tab.close();
  });

  it("opens the answers of the selected step at Enter, and says so", async () => {
    const { tab } = await pages.open(pages.address, desktop);
    const chart = chartOf(tab);
    await chart.focus();
    await tab.keyboard.press("Home");
    await tab.keyboard.press("ArrowRight");
    expect(await chart.getAttribute("aria-description")).toBe("Enter opens the answers of the selected step");
    await tab.keyboard.press("Enter");
    await expect.poll(() => shown(tab)).toBe(answersOf(20));
    await tab.close();
  });

  it("shows its values at the first tap of a finger, and its answers at the second", async () => {
    const phone = { viewport: { width: 390, height: 844 }, colorScheme: "dark", hasTouch: true } as const;
    const { tab } = await pages.open(pages.address, phone);
    const point = pointsOf(chartOf(tab)).nth(1);
    await point.tap();
    expect(await tab.locator(".readout:visible").first().textContent()).toContain("em step 20: ");
    expect(await shown(tab)).not.toContain("#answers");
    await point.tap();
    await expect.poll(() => shown(tab)).toBe(answersOf(20));
    await tab.close();
  });

  it("does nothing where the page has no answers", async () => {
    const run = await readRun(pages.folder);
    const file = join(pages.folder, "without.html");
    for (const answers of [null, await readAnswers(run, { maxBytes: 0 })]) {
      await writeFile(file, renderPage(run, answers));
      const { tab } = await pages.open(`file://${file}`, desktop);
      const chart = chartOf(tab);
      const point = pointsOf(chart).nth(1);
      await point.click();
      await tab.keyboard.press("Enter");
      expect(await point.evaluate((circle) => getComputedStyle(circle).cursor)).not.toBe("pointer");
      expect(await chart.getAttribute("aria-description")).toBeNull();
      expect((await shown(tab)).trim()).toBe("");
      await tab.close();
    }
  });

  it("has no fault that axe finds while its step is selected", async () => {
    const { tab } = await pages.open(pages.address, desktop);
    await chartOf(tab).focus();
    await tab.evaluate(axe.source);
    const found = await tab.evaluate(
      "axe.run('figure').then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes[0].html))",
    );
    expect(found).toEqual([]);
    await tab.close();
  });
});
