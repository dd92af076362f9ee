import axe from "axe-core";
import type { Page } from "playwright-core";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import {
  hasBrowser,
  withPages,
  type OpenedTab,
} from "../../packages/dashboard/src/html/browser.test-data.ts";
import { buildExample } from "./build.ts";
import type { RunEnd } from "./messages.ts";
import { serveFolder } from "./static-server.test-data.ts";

const pages = withPages(async (folder) => {
  if (!hasBrowser) return "";
  await buildExample(folder, null);
  return serveFolder(folder);
});
const query = "?steps=3&save=1&questions=12&callbacks=capability&backend=wasm";
const shortest = "?steps=1&save=1&questions=4&callbacks=capability&backend=wasm";
const screen = { viewport: { width: 1280, height: 900 }, colorScheme: "light" } as const;

const inState = (tab: Page, state: string) => tab.waitForSelector(`body[data-state="${state}"]`);
const statusShows = (tab: Page, text: string) =>
  tab.locator("#status").filter({ hasText: text }).waitFor({ timeout: 120_000 });

async function train(tab: Page): Promise<void> {
  await inState(tab, "idle");
  await tab.click("#start");
}

async function finish(tab: Page): Promise<RunEnd> {
  await statusShows(tab, "Finished");
  return JSON.parse((await tab.getAttribute("body", "data-end"))!) as RunEnd;
}

/** Runs in the page: reloads it as soon as it shows a step. */
function reloadAt(step: string): void {
  const observer = new MutationObserver(() => document.body.dataset["step"] === step && location.reload());
  observer.observe(document.body, { attributes: true });
}

/** Returns the rules of accessibility that the page breaks. */
async function violations(tab: Page): Promise<readonly string[]> {
  await tab.evaluate(axe.source);
  return tab.evaluate("axe.run().then(({ violations }) => violations.map(({ id }) => id))");
}

describe.skipIf(!hasBrowser)("the example page (needs Chromium)", () => {
  /** The page of a run that nothing interrupted, and the run's end. */
  let uninterrupted: OpenedTab & { readonly end: RunEnd };

  beforeAll(async () => {
    const opened = await pages.open(`${pages.address}${query}`, screen);
    await train(opened.tab);
    uninterrupted = { ...opened, end: await finish(opened.tab) };
  });

  it("trains, measures and draws with requests to its own folder only", async () => {
    const { tab, requests, messages, end } = uninterrupted;
    expect(end).toMatchObject({ isFinished: true, resumedFrom: null, undisturbed: "yes" });
    expect(await tab.locator("[data-curve='capability/accuracy'] svg:visible").count()).toBeGreaterThan(0);
    expect(await tab.getByText("Training undisturbed: yes").count()).toBeGreaterThan(0);
    expect(await violations(tab)).toEqual([]);
    await tab.setViewportSize({ width: 390, height: 844 });
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
    const outside = requests.filter((url) => !url.startsWith(pages.address) && !url.startsWith("data:"));
    expect(outside).toEqual([]);
    expect(messages).toEqual([]);
    await tab.close();
  });

  it("continues after a reload, and ends with the same bits as without", async () => {
    const { tab, messages } = await pages.open(`${pages.address}${query}`, screen);
    const isReloaded = tab.waitForEvent("framenavigated");
    await tab.evaluate(reloadAt, "em 2");
    await train(tab);
    await isReloaded;
    const { resumedFrom, weights, undisturbed } = await finish(tab);
    // The worker goes on until the page is gone.
    expect([1, 2]).toContain(resumedFrom);
    expect({ weights, undisturbed }).toEqual({ weights: uninterrupted.end.weights, undisturbed: "yes" });
    // The run of an earlier page is shown as it ended.
    await tab.reload();
    await inState(tab, "finished");
    expect(await tab.getByText("Training undisturbed: yes").count()).toBeGreaterThan(0);
    // The reload may interrupt the write of a snapshot, whose unfinished file the store then removes.
    const others = messages.filter((message) => !message.includes("left over from an interrupted write"));
    expect(others).toEqual([]);
    await tab.close();
  });

  it("deletes the run", async () => {
    const { tab } = await pages.open(`${pages.address}${shortest}`, screen);
    await train(tab);
    await finish(tab);
    await tab.click("#delete");
    await statusShows(tab, "Ready.");
    await tab.reload();
    await inState(tab, "idle");
    expect(await tab.locator("main").innerHTML()).toBe("");
    await tab.close();
  });

  it("trains in memory where the browser allows no storage", async () => {
    const { tab } = await pages.open("about:blank", screen);
    const refuse = `IDBFactory.prototype.open = () => { throw new DOMException("insecure", "SecurityError"); };`;
    await tab.route("**/worker.js", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: refuse + (await response.text()) });
    });
    await tab.goto(`${pages.address}${shortest}`);
    await statusShows(tab, "This browser allows no storage");
    await train(tab);
    expect(await finish(tab)).toMatchObject({ isFinished: true, undisturbed: "yes" });
    await tab.click("#delete");
    await statusShows(tab, "Ready.");
    await tab.close();
  });

  it("reports a worker that the host does not send", async () => {
    const { tab } = await pages.open("about:blank", screen);
    await tab.route("**/worker.js", (route) => route.fulfill({ status: 404, body: "" }));
    await tab.goto(pages.address);
    await statusShows(tab, "worker.js cannot be loaded");
    expect(await tab.isDisabled("#start")).toBe(true);
    await tab.close();
  });

  it.each([
    [{ kind: "failed", message: "The device was lost." }, "The device was lost. Reload the page"],
    [
      { kind: "ended", end: { isFinished: false, brokenReceipt: "guard", secondsPerStep: null } },
      "Stopped: guard.",
    ],
  ])("says why training ended early, and that a new page can continue: %o", async (report, text) => {
    const { tab } = await pages.open("about:blank", screen);
    const ready = { kind: "ready", isInMemory: false, run: null };
    const body = `postMessage(${JSON.stringify(ready)}); onmessage = () => postMessage(${JSON.stringify(report)});`;
    await tab.route("**/worker.js", (route) => route.fulfill({ contentType: "text/javascript", body }));
    await tab.goto(pages.address);
    await train(tab);
    await statusShows(tab, text);
    expect(await tab.textContent("#status")).toContain("continue from the last checkpoint");
    await tab.close();
  });

  it("says that it does not work as an opened file", async () => {
    const { tab } = await pages.open(`file://${join(pages.folder, "index.html")}`, screen);
    await tab.locator("#hint").waitFor();
    expect(await tab.textContent("#hint")).toContain("needs JavaScript and a static server");
    await tab.close();
  });

  it("reports a second tab instead of writing the run from both", async () => {
    const { tab } = await pages.open("about:blank", screen);
    const context = await tab.context().browser()!.newContext();
    const [first, second] = [await context.newPage(), await context.newPage()];
    await first.goto(pages.address);
    await inState(first, "idle");
    await second.goto(pages.address);
    await inState(second, "idle");
    expect(await second.textContent("#status")).toContain("another page or worker has opened");
    await context.close();
    await tab.close();
  });
});
