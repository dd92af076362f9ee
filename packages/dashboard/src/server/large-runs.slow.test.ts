import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { attacks } from "../html/attacks.test-data.ts";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { rowsFile, writeLargeRoot } from "./large-root.test-data.ts";
import { serveResults, type Serving } from "./serve-results.ts";

const attack = attacks.join("\n");
const root = temporaryFolder(afterAll);
let serving: Serving;
beforeAll(async () => {
  await writeLargeRoot(
    root,
    ({ metrics, provenance, ...snapshot }) => ({
      ...snapshot,
      metrics: { accuracy: { ...metrics["accuracy"]!, unit: attack }, [attack]: metrics["accuracy"]! },
      provenance: { ...provenance, model: { name: attack } },
      status: "partial",
      reason: attack,
    }),
    (at) => {
      const text = attacks[at % attacks.length]!;
      return { id: `q${at}`, question: `${at} ${text}`, persona: text, text };
    },
  );
  serving = await serveResults({ root, port: 0 });
});
afterAll(() => serving.close());

/** The machine may be busy. */
const slow = { timeout: 10_000 };
const phone = { viewport: { width: 390, height: 844 }, colorScheme: "light" } as const;

/** Asserts that hostile strings ran nothing, sent nothing and widened nothing. */
async function expectHarmless(tab: Page, requests: readonly string[], messages: readonly string[]) {
  await tab.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
  expect(await tab.evaluate("typeof window.marked")).toBe("undefined");
  expect(
    await tab.evaluate("document.querySelectorAll('img, iframe, object, form, base, link, [onload]').length"),
  ).toBe(0);
  expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
  const isOther = (url: string) => !url.startsWith(serving.address);
  expect(requests.filter(isOther)).toEqual([]);
  expect(messages).toEqual([]);
}

describe.skipIf(!hasBrowser)("the page of a large run", () => {
  const pages = withPages(async () => serving.address);
  const address = (run: string) => `${serving.address}?results_dir=${run}`;

  it("shows a sample without its script, with a link to the whole page", async () => {
    const screen = { ...phone, javaScriptEnabled: false };
    const { tab, requests, messages } = await pages.open(address("snapshots"), screen);
    expect(await tab.locator("[role=status]").textContent()).toContain("280 of 1200 measurements");
    expect(await tab.locator("#receipts").count()).toBe(0);
    await tab.locator("[role=status] a").click();
    await tab.locator("#receipts").waitFor();
    expect(await tab.locator("[role=status]").count()).toBe(0);
    expect(messages).toEqual([]);
    expect(requests).toHaveLength(2);
    await tab.close();
  });

  it("is replaced by the whole page by its script, and treats hostile strings as text", async () => {
    const another = await serveResults({ root, port: 0 });
    const { tab, requests, messages } = await pages.open(`${another.address}?results_dir=snapshots`, phone);
    await tab.locator("#receipts").waitFor();
    expect(await tab.locator("[role=status]").count()).toBe(0);
    const isOfPage = (url: string) => url.startsWith(another.address);
    await expectHarmless(
      tab,
      requests.filter((url) => !isOfPage(url)),
      messages,
    );
    expect(requests.some((url) => url.endsWith("?results_dir=snapshots&view=whole"))).toBe(true);
    await tab.close();
    await another.close();
  });

  it("shows hostile rows before they are verified, and the damage once they are", async () => {
    const { tab, requests, messages } = await pages.open(address("rows"), phone);
    await expect.poll(() => tab.locator("#answers .answer").count(), slow).toBe(20);
    await expect.poll(() => tab.locator("#answers .found").textContent(), slow).not.toContain("verified");
    await expectHarmless(tab, requests, messages);
    const file = join(root, rowsFile);
    const before = await readFile(file, "utf8");
    await writeFile(file, before.replace('"15000 ', '"25000 '));
    await tab.goto(address("rows"));
    await expect.poll(() => tab.locator("#answers").textContent(), slow).toContain("edited or damaged");
    expect(await tab.locator("#answers .answer").count()).toBe(0);
    await writeFile(file, before);
    await tab.close();
  });
});
