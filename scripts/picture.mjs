// Takes the picture of a run's page that the README shows. Needs a Chromium (apt-get install chromium).
// Usage: npm run picture -- RUN_DIR [FILE]        FILE is docs/demo.png by default
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { writePage } from "../packages/dashboard/dist/index.js";

const [runDir, file = "docs/demo.png"] = process.argv.slice(2);
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);
if (!runDir || !existsSync(runDir) || !executablePath) {
  const got = executablePath ? (runDir ?? "no folder") : "no Chromium";
  console.error(
    `[periodic-eval] picture: got ${got}, expected a run's folder and a Chromium. Name the run, install chromium.`,
  );
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "picture-"));
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport: { width: 1120, height: 1130 }, deviceScaleFactor: 1.5 });
  await page.goto(`file://${await writePage(runDir, join(folder, "page.html"))}`);
  // The header, the findings and the first curve; the page itself goes on below.
  const curves = await page.locator("main > section figure").first().boundingBox();
  await page.screenshot({
    path: file,
    clip: { x: 0, y: 0, width: 1120, height: curves.y + curves.height + 32 },
    fullPage: true,
  });
  console.log(file);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
