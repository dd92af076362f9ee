import { afterAll, expect } from "vitest";
import { rm } from "node:fs/promises";
import { testOpensWithoutRequests, withPages } from "../html/browser.test-data.ts";
import { readResults, writeSampleRoot, type SampleRoot } from "./sample-root.test-data.ts";
import { serveResults, type Serving } from "./serve-results.ts";

let sample: SampleRoot;
let serving: Serving;
const pages = withPages(async () => {
  sample = await writeSampleRoot();
  serving = await serveResults({ root: sample.root, port: 0, readResults });
  return serving.address;
});
afterAll(async () => {
  await serving.close();
  await sample.release();
  await rm(sample.above, { recursive: true });
});

testOpensWithoutRequests(pages, "figure svg", async ({ tab, size, width }) => {
  const entries = await tab.locator("details.entry").all();
  expect(entries).toHaveLength(sample.runs.length);
  // All folded runs fit on a desktop screen.
  const last = await entries.at(-1)!.boundingBox();
  if (size === "desktop") expect(last!.y + last!.height).toBeLessThan(900);
  for (const entry of entries) {
    const summary = entry.locator("summary").first();
    const [title, state] = [summary.locator(".title"), summary.locator(".state")];
    // Name and state share a line without overlapping.
    const [left, right] = [(await title.boundingBox())!, (await state.boundingBox())!];
    expect(right.x).toBeGreaterThanOrEqual(left.x + left.width);
    expect(right.x + right.width).toBeLessThanOrEqual(width);
    expect(await entry.locator(".notice").first().isVisible()).toBe(false);
    await summary.click();
    expect(await entry.locator(".notice").first().isVisible()).toBe(true);
  }
  // Charts are side by side on a desktop, and one per row on a phone.
  const charts = tab.locator(".panels .panel");
  const [first, second] = [await charts.nth(0).boundingBox(), await charts.nth(1).boundingBox()];
  expect(first!.y === second!.y).toBe(size === "desktop");
  expect(first!.width).toBeGreaterThan(size === "desktop" ? 280 : width * 0.7);
});
