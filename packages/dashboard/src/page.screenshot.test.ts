import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { writeSampleRun } from "./sample-run.test-data.ts";
import { writePage } from "./write-page.ts";

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);

/** Skipped where no browser is installed: `apt-get install chromium`. */
const inBrowser = it.skipIf(executablePath === undefined);

let [runDir, file] = ["", ""];
let browser: Browser | undefined;
beforeAll(async () => {
  runDir = await mkdtemp(join(tmpdir(), "screenshot-"));
  await writeSampleRun(runDir);
  file = await writePage(runDir);
  if (executablePath) browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});
afterAll(async () => {
  await browser?.close();
  await rm(runDir, { recursive: true });
});

const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } } as const;
const cases = (["light", "dark"] as const).flatMap((scheme) =>
  (["desktop", "phone"] as const).map((size) => [scheme, size] as const),
);

inBrowser.each(cases)(
  "opens from the file system, %s on a %s, without a request or a complaint",
  async (colorScheme, size) => {
    const tab = await browser!.newPage({ viewport: sizes[size], colorScheme });
    const [requests, complaints]: [string[], string[]] = [[], []];
    tab.on("request", (request) => requests.push(request.url()));
    tab.on("console", (message) => complaints.push(message.text()));
    await tab.goto(`file://${file}`);

    expect(requests).toEqual([`file://${file}`]);
    expect(complaints).toEqual([]);
    // Nothing sticks out sideways.
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(sizes[size].width);
    // One of the two drawings is shown, and it fills its panel.
    expect(await tab.locator(".wide svg").isVisible()).toBe(size === "desktop");
    const chart = await tab.locator(size === "desktop" ? ".wide svg" : ".narrow svg").boundingBox();
    expect(chart!.width).toBeGreaterThan(sizes[size].width * 0.7);
    // The scheme reaches the drawing: its ink is the page's.
    const ink = await tab.evaluate("getComputedStyle(document.querySelector('figure svg')).color");
    expect(ink).toBe(colorScheme === "light" ? "rgb(27, 29, 34)" : "rgb(232, 230, 225)");
    await tab.close();
  },
);
