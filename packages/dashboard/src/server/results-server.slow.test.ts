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

testOpensWithoutRequests(pages, "article.run", async ({ tab, size, width }) => {
  const entries = await tab.locator("article.run").all();
  expect(entries).toHaveLength(sample.runs.length);
  // All runs fit on a desktop screen.
  const last = await entries.at(-1)!.boundingBox();
  if (size === "desktop") expect(last!.y + last!.height).toBeLessThan(900);
  for (const entry of entries) {
    const [title, state] = [entry.locator(".title"), entry.locator(".state")];
    // Name and state share a line without overlapping.
    const [left, right] = [(await title.boundingBox())!, (await state.boundingBox())!];
    expect(right.x).toBeGreaterThanOrEqual(left.x + left.width);
    expect(right.x + right.width).toBeLessThanOrEqual(width);
  }
});
