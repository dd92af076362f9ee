import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);

/** Tests are skipped without one: `apt-get install chromium`. */
export const hasBrowser: boolean = executablePath !== undefined;

const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } } as const;

interface Screen {
  readonly viewport: { readonly width: number; readonly height: number };
  readonly colorScheme: "light" | "dark";
}

/** What a tab shows, what it asked for and what it complains of. */
export interface OpenedTab {
  readonly tab: Page;
  readonly requests: readonly string[];
  readonly complaints: readonly string[];
}

/** A page that stands before the tests begin: a folder of the tests' own, and an address in it or elsewhere. */
export interface Pages {
  /** Where `prepare` wrote; empty before. */
  folder: string;
  /** What `prepare` returned: the address of the page. */
  address: string;
  open(address: string, screen: Screen): Promise<OpenedTab>;
}

/** A browser and a folder for all tests of a file; `prepare` writes the page and returns its address. */
export function withPages(prepare: (folder: string) => Promise<string>): Pages {
  let browser: Browser | undefined;
  const pages: Pages = {
    folder: "",
    address: "",
    async open(address, screen) {
      const tab = await browser!.newPage(screen);
      const [requests, complaints]: [string[], string[]] = [[], []];
      tab.on("request", (request) => requests.push(request.url()));
      tab.on("console", (message) => complaints.push(message.text()));
      await tab.goto(address);
      return { tab, requests, complaints };
    },
  };
  beforeAll(async () => {
    pages.folder = await mkdtemp(join(tmpdir(), "pages-"));
    pages.address = await prepare(pages.folder);
    if (executablePath !== undefined)
      browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  });
  afterAll(async () => {
    await browser?.close();
    await rm(pages.folder, { recursive: true });
  });
  return pages;
}

/** What a test of a page is told of the screen it is on. */
export interface OnScreen {
  readonly tab: Page;
  readonly size: keyof typeof sizes;
  readonly width: number;
}

/**
 * On a desk and in a hand, in daylight and at night, the page opens without another request and without a complaint, nothing
 * sticks out sideways, and its drawings are in the page's ink; `inspect` sees the rest.
 *
 * @param drawing a selector of what is drawn
 */
export function opensQuietly(pages: Pages, drawing: string, inspect: (on: OnScreen) => Promise<void>): void {
  const screens = (["light", "dark"] as const).flatMap((scheme) =>
    (["desktop", "phone"] as const).map((size) => [scheme, size] as const),
  );
  it.skipIf(!hasBrowser).each(screens)(
    "opens, %s on a %s, without a request or a complaint",
    async (colorScheme, size) => {
      const viewport = sizes[size];
      const { tab, requests, complaints } = await pages.open(pages.address, { viewport, colorScheme });
      expect(await sidewaysOf(tab)).toBe(viewport.width);
      await inspect({ tab, size, width: viewport.width });
      expect(await sidewaysOf(tab)).toBe(viewport.width);
      const ink = `getComputedStyle(document.querySelector(${JSON.stringify(drawing)})).color`;
      expect(await tab.evaluate(ink)).toBe(
        colorScheme === "light" ? "rgb(27, 29, 34)" : "rgb(232, 230, 225)",
      );
      expect(requests).toEqual([pages.address]);
      expect(complaints).toEqual([]);
      await tab.close();
    },
  );
}

const sidewaysOf = (tab: Page): Promise<unknown> => tab.evaluate("document.documentElement.scrollWidth");
