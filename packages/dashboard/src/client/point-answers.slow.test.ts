import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readRun } from "@periodic-eval/store";
import axe from "axe-core";
import type { Locator, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { readAnswers } from "../answers/read-answers.ts";
import { writeSampleAnswers } from "../answers/sample-answers.test-data.ts";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { renderPage, writePage } from "../run/run-page.ts";

/** A run of two phases, em and later, with steps 0, 20 and 40 each and another value in each. Capability has no value at step 20 of em. */
const pages = withPages(async (folder) => {
  await writeSampleAnswers(folder, undefined, (snapshot) =>
    snapshot.id === "capability" && snapshot.step === 20 ? { ...snapshot, metrics: {} } : snapshot,
  );
  await writeSampleAnswers(folder, undefined, (snapshot) => ({
    ...snapshot,
    phase: "later",
    run_step: snapshot.run_step + 40,
    // Its interval at its start covers the last point of em.
    metrics: { accuracy: { ...snapshot.metrics["accuracy"]!, value: 0.2, ci95: [0, 1] } },
    created_at: "2026-01-02T00:00:00.000Z",
  }));
  return `file://${await writePage(folder)}`;
});

/** A run of 4,000 steps whose three measurements are so close together that their circles overlap. */
const densePages = withPages(async (folder) => {
  await writeSampleAnswers(folder, undefined, (snapshot) => ({ ...snapshot, max_steps: 4000 }));
  return `file://${await writePage(folder)}`;
});

const desktop = { viewport: { width: 1280, height: 900 }, colorScheme: "light" } as const;
const phone = { viewport: { width: 390, height: 844 }, colorScheme: "dark", hasTouch: true } as const;
const chartOf = (tab: Page, id = "alignment"): Locator =>
  tab.locator(`[data-curve='${id}/accuracy'] svg:visible`).first();
const readoutOf = (tab: Page, id = "alignment"): Promise<string | null> =>
  tab.locator(`[data-curve='${id}/accuracy'] .readout`).textContent();
/** The points in the order of the run. */
const pointsOf = (chart: Locator): Locator => chart.locator('g[fill="transparent"] > circle');
const shown = (tab: Page): Promise<string> =>
  tab.evaluate("decodeURIComponent(location.hash) + ' ' + document.activeElement.id");
const answersOf = (step: number, phase = "em", id = "alignment"): string =>
  `#answers?phase=${phase}&id=${id}&step=${step} all-answers`;
const expectNothingOpened = async (tab: Page): Promise<void> =>
  expect(await tab.evaluate("location.hash")).toBe("");
const centreOf = async (place: Locator): Promise<readonly [number, number]> => {
  const { x, y, width, height } = (await place.boundingBox())!;
  return [x + width / 2, y + height / 2];
};

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

  it("opens no answers of the other phase if its own phase has none there", async () => {
    const run = await readRun(pages.folder);
    const answers = await readAnswers(run);
    const measurements = answers.data.measurements.filter(({ phase, step }) => phase === "em" || step > 0);
    const file = join(pages.folder, "partly.html");
    await writeFile(file, renderPage(run, { ...answers, data: { ...answers.data, measurements } }));
    const { tab } = await pages.open(`file://${file}`, desktop);
    const points = pointsOf(chartOf(tab));
    await points.nth(3).click();
    expect(await readoutOf(tab)).toContain("later step 0: ");
    expect(await points.nth(3).evaluate((circle) => getComputedStyle(circle).cursor)).not.toBe("pointer");
    await expectNothingOpened(tab);
    await tab.keyboard.press("Enter");
    await expect.poll(() => shown(tab)).toBe(answersOf(40));
    await tab.close();
  });

  it("shows the values of the topmost circle where circles overlap, and a click opens its answers", async () => {
    const { tab } = await pages.open(densePages.address, desktop);
    const points = pointsOf(chartOf(tab));
    await chartOf(tab).scrollIntoViewIfNeeded();
    const [x, y] = await centreOf(points.first());
    await tab.mouse.move(x, y);
    expect(await readoutOf(tab)).toContain("em step 40: ");
    await tab.mouse.down();
    await tab.mouse.up();
    await expect.poll(() => shown(tab)).toBe(answersOf(40));
    await tab.close();
  });

  it("opens nothing where a press ends elsewhere, or at a click without a press", async () => {
    const { tab } = await pages.open(pages.address, desktop);
    const chart = chartOf(tab);
    await chart.scrollIntoViewIfNeeded();
    const [x, y] = await centreOf(pointsOf(chart).nth(1));
    await tab.mouse.move(x, y);
    await tab.mouse.down();
    await tab.mouse.move(x + 100, y + 60);
    await tab.mouse.up();
    await expectNothingOpened(tab);
    await chart.dispatchEvent("click");
    await pointsOf(chart).nth(1).dispatchEvent("click");
    await expectNothingOpened(tab);
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

  it("opens at Enter the step that the focused chart marks, if the pointer selects another one", async () => {
    const { tab } = await pages.open(pages.address, desktop);
    await chartOf(tab, "capability").focus();
    await pointsOf(chartOf(tab)).nth(1).hover();
    expect(await readoutOf(tab)).toContain("em step 20: ");
    expect(await readoutOf(tab, "capability")).toContain("em step 0: ");
    await tab.keyboard.press("Enter");
    await expect.poll(() => shown(tab)).toBe(answersOf(0, "em", "capability"));
    await tab.close();
  });

  it("opens nothing at Enter while Escape hides the values", async () => {
    const { tab } = await pages.open(pages.address, desktop);
    await chartOf(tab).focus();
    for (const key of ["Home", "Escape", "Enter"]) await tab.keyboard.press(key);
    expect(await readoutOf(tab)).toBe("");
    await expectNothingOpened(tab);
    for (const key of ["ArrowRight", "Enter"]) await tab.keyboard.press(key);
    await expect.poll(() => shown(tab)).toBe(answersOf(20));
    await tab.close();
  });

  it("shows its values again at a finger that has tapped elsewhere", async () => {
    const { tab } = await pages.open(pages.address, phone);
    const point = pointsOf(chartOf(tab)).nth(1);
    await point.tap();
    await tab.locator("h1").tap();
    expect(await readoutOf(tab)).toBe("");
    await point.tap();
    expect(await readoutOf(tab)).toContain("em step 20: ");
    await expectNothingOpened(tab);
    await point.tap();
    await expect.poll(() => shown(tab)).toBe(answersOf(20));
    await tab.close();
  });

  it("shows its values at the first tap of a finger, and its answers at the second", async () => {
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
