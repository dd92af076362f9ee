import { expect } from "vitest";
import { testOpensWithoutRequests, withPages } from "../html/browser.test-data.ts";
import { writeSampleRun } from "./sample-run.test-data.ts";
import { writePage } from "./run-page.ts";

const pages = withPages(async (folder) => {
  await writeSampleRun(folder);
  return `file://${await writePage(folder)}`;
});

testOpensWithoutRequests(pages, "figure svg", async ({ tab, size, width }) => {
  // Only the chart for this screen size is visible, and it fills its panel.
  expect(await tab.locator(".wide svg").isVisible()).toBe(size === "desktop");
  const chart = await tab.locator(size === "desktop" ? ".wide svg" : ".narrow svg").boundingBox();
  expect(chart!.width).toBeGreaterThan(width * 0.7);
  // A caption is as wide as its panel.
  const [caption, panel] = [tab.locator(".sub").first(), tab.locator(".panel").first()];
  expect((await caption.boundingBox())!.width).toBe((await panel.boundingBox())!.width);
});
