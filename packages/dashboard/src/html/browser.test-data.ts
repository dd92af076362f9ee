import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);

/** Whether a browser is installed. Tests skip without one: `apt-get install chromium`. */
export const hasBrowser: boolean = executablePath !== undefined;

const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } } as const;

interface Screen {
  readonly viewport: { readonly width: number; readonly height: number };
  readonly colorScheme: "light" | "dark";
}

/** A tab with its requests and its console messages. */
export interface OpenedTab {
  readonly tab: Page;
  readonly requests: readonly string[];
  readonly messages: readonly string[];
}

/** A page that exists before the tests begin, and a temporary folder. */
export interface Pages {
  /** The temporary folder; empty before `prepare` runs. */
  folder: string;
  /** The address of the page, as returned by `prepare`. */
  address: string;
  open(address: string, screen: Screen): Promise<OpenedTab>;
}

/**
 * Provides a browser and a folder for all tests of a file. `prepare` writes the page and returns its address.
 *
 * @param args Further arguments of the browser.
 */
export function withPages(prepare: (folder: string) => Promise<string>, args: readonly string[] = []): Pages {
  let browser: Browser | undefined;
  const pages: Pages = {
    folder: "",
    address: "",
    async open(address, screen) {
      const tab = await browser!.newPage(screen);
      const [requests, messages]: [string[], string[]] = [[], []];
      tab.on("request", (request) => requests.push(request.url()));
      tab.on("console", (message) => messages.push(message.text()));
      await tab.goto(address);
      return { tab, requests, messages };
    },
  };
  beforeAll(async () => {
    pages.folder = await mkdtemp(join(tmpdir(), "pages-"));
    pages.address = await prepare(pages.folder);
    if (executablePath !== undefined)
      browser = await chromium.launch({
        executablePath,
        args: ["--no-sandbox", ...args],
      });
  });
  afterAll(async () => {
    await browser?.close();
    await rm(pages.folder, { recursive: true });
  });
  return pages;
}

/** A tab and the size of its screen. */
export interface TabOnScreen {
  readonly tab: Page;
  readonly size: keyof typeof sizes;
  readonly width: number;
}

/**
 * Tests a page on desktop and phone, in light and dark mode: it makes no further request, writes nothing to the console, does
 * not scroll sideways, and draws in the page's text colour. `inspect` adds assertions.
 *
 * @param drawing A CSS selector for the charts.
 */
export function testOpensWithoutRequests(
  pages: Pages,
  drawing: string,
  inspect: (on: TabOnScreen) => Promise<void>,
): void {
  const screens = (["light", "dark"] as const).flatMap((scheme) =>
    (["desktop", "phone"] as const).map((size) => [scheme, size] as const),
  );
  it.skipIf(!hasBrowser).each(screens)(
    "opens in %s mode on a %s without requests or console messages",
    async (colorScheme, size) => {
      const viewport = sizes[size];
      const { tab, requests, messages } = await pages.open(pages.address, { viewport, colorScheme });
      expect(await scrollWidthOf(tab)).toBe(viewport.width);
      await inspect({ tab, size, width: viewport.width });
      expect(await scrollWidthOf(tab)).toBe(viewport.width);
      const ink = `getComputedStyle(document.querySelector(${JSON.stringify(drawing)})).color`;
      expect(await tab.evaluate(ink)).toBe(
        colorScheme === "light" ? "rgb(27, 29, 34)" : "rgb(232, 230, 225)",
      );
      // A served page follows the changes of its own server.
      const isOfPage = (url: string) => !url.startsWith(`${pages.address}/version?`);
      expect(requests.filter(isOfPage)).toEqual([pages.address]);
      expect(messages).toEqual([]);
      await tab.close();
    },
  );
}

const scrollWidthOf = (tab: Page): Promise<unknown> => tab.evaluate("document.documentElement.scrollWidth");
