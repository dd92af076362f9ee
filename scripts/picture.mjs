// Takes the screenshots of the README and the docs. Needs Chromium (apt-get install chromium).
// Usage: npm run picture -- RUN_DIR [FILE]        of a run's page; FILE is docs/demo.png by default; without it also docs/answers.png
//        npm run picture -- FOLDER [FILE]         of a folder of runs, as serve shows it; docs/serve.png
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { writePage } from "../packages/dashboard/dist/index.js";
import { serveResults } from "../packages/dashboard/dist/server/index.js";

const [runDir, given] = process.argv.slice(2);
const isRun = runDir !== undefined && existsSync(join(runDir, "periodic_eval"));
const file = given ?? (isRun ? "docs/demo.png" : "docs/serve.png");
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

/** Captures the header, the verdicts and the first chart of a run's page. */
async function pictureOfRun(page) {
  const folder = mkdtempSync(join(tmpdir(), "picture-"));
  try {
    await page.goto(pathToFileURL(await writePage(runDir, join(folder, "page.html"))).href);
    const curves = await page.locator("main > section figure").first().boundingBox();
    await takePicture(page, curves.y + curves.height + 32);
    if (given === undefined) await pictureOfAnswers(page);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Captures the answers to one question at all steps, from the worst answer of the step with the first evidence. */
async function pictureOfAnswers(page) {
  await page.locator(".to-answers", { hasText: "Worst answers" }).last().click();
  await page.locator("#answers .all-steps").first().click();
  await page.locator("#answers label.marks select").selectOption("start");
  await page.locator("#answers .at-step").first().waitFor();
  const { y, height } = await page.locator("#answers").boundingBox();
  const top = (await page.evaluate("scrollY")) + y;
  await page.addStyleTag({ content: ".contents { visibility: hidden; }" }).catch(() => undefined);
  const clip = { x: 0, y: top - 24, width: 1120, height: height + 48 };
  await page.screenshot({ path: "docs/answers.png", clip, fullPage: true });
  console.log("docs/answers.png");
}

/** Captures the list of runs. */
async function pictureOfFolder(page) {
  const serving = await serveResults({ root: runDir, port: 0 });
  try {
    await page.goto(serving.address);
    const runs = await page.locator(".runs").boundingBox();
    await takePicture(page, runs.y + runs.height + 24);
  } finally {
    await serving.close();
  }
}

const takePicture = (page, height) =>
  page.screenshot({ path: file, clip: { x: 0, y: 0, width: 1120, height }, fullPage: true });

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({ viewport: { width: 1120, height: 1130 }, deviceScaleFactor: 1.5 });
  await (isRun ? pictureOfRun(page) : pictureOfFolder(page));
  console.log(file);
} finally {
  await browser.close();
}
