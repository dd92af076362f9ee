import { existsSync } from "node:fs";
import { chromium, type Browser, type Page } from "playwright-core";

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);

/** Tests are skipped without one: `apt-get install chromium`. */
export const hasBrowser: boolean = executablePath !== undefined;

/** Nothing where none is installed. */
export const openBrowser = async (): Promise<Browser | undefined> =>
  executablePath === undefined ? undefined : chromium.launch({ executablePath, args: ["--no-sandbox"] });

const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } } as const;

/** In daylight and at night, on a desk and in a hand. */
export const screens = (["light", "dark"] as const).flatMap((scheme) =>
  (["desktop", "phone"] as const).map((size) => [scheme, size, sizes[size]] as const),
);

interface Screen {
  readonly viewport: { readonly width: number; readonly height: number };
  readonly colorScheme: "light" | "dark";
}

/** Opens a file, and keeps what it asks for and complains of. */
export async function openQuietly(browser: Browser, file: string, screen: Screen) {
  const tab: Page = await browser.newPage(screen);
  const [requests, complaints]: [string[], string[]] = [[], []];
  tab.on("request", (request) => requests.push(request.url()));
  tab.on("console", (message) => complaints.push(message.text()));
  await tab.goto(`file://${file}`);
  return { tab, requests, complaints };
}
