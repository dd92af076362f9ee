import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { testOpensWithoutRequests, withPages } from "../html/browser.test-data.ts";
import { renderResults } from "./results-page.ts";
import { sampleResults } from "./sample-results.test-data.ts";
import { summarizeResults } from "./summarize-results.ts";

const pages = withPages(async (folder) => {
  const file = join(folder, "index.html");
  await writeFile(file, renderResults(summarizeResults(sampleResults), join(folder, "metrics.json")));
  return `file://${file}`;
});

testOpensWithoutRequests(pages, "td.plot svg", async ({ tab, size, width }) => {
  // The first metric of a task is visible without scrolling.
  const section = tab.locator("section", { has: tab.locator("h2", { hasText: "gsm8k" }) });
  const score = await section.locator("td.score").first().boundingBox();
  expect(score!.x + score!.width).toBeLessThanOrEqual(width);
  const name = await section.locator("tbody th").first().boundingBox();
  expect(name!.width).toBeLessThan(width / 2);
  // Only desktop screens have room for intervals.
  expect(await section.locator("svg").first().isVisible()).toBe(size === "desktop");
  // Groups unfold without a script.
  await tab.locator("summary").first().click();
  expect(await tab.locator("details table").first().isVisible()).toBe(true);
});
