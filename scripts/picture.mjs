// Takes the screenshots of the README and the docs. Needs Chromium (apt-get install chromium).
// Usage: npm run picture -- RUN_DIR               the first picture for wide and narrow screens, light and dark, docs/demo*.png, and docs/answers.png
//        npm run picture -- RUN_DIR FILE          the head of a run's page
//        npm run picture -- FOLDER [FILE]         of a folder of runs, as serve shows it; docs/serve.png
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { writePage } from "../packages/dashboard/dist/index.js";
import { serveResults } from "../packages/dashboard/dist/server/index.js";

const [runDir, output] = process.argv.slice(2);
const isRun = runDir !== undefined && existsSync(join(runDir, "periodic_eval"));
const file = output ?? "docs/serve.png";
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

/** Captures the header, the verdicts and the first chart of a run's page; without a file, the first picture and the answers. */
async function pictureOfRun(page) {
  const folder = mkdtempSync(join(tmpdir(), "picture-"));
  try {
    const address = pathToFileURL(await writePage(runDir, join(folder, "page.html"))).href;
    await page.goto(address);
    if (output !== undefined) return await takePicture(page, await endOfChart(page));
    await pictureOfAnswers(page);
    for (const colorScheme of ["light", "dark"])
      for (const [width, name] of Object.entries({ 860: "demo", 390: "demo-phone" })) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width: Number(width), height: 844 });
        await page.goto("about:blank");
        await page.goto(address);
        await page.addStyleTag({ content: `${notInFirstPicture} { display: none !important; }` });
        const end = await endOfChart(page);
        await takePicture(page, end, `docs/${name}${colorScheme === "dark" ? "-dark" : ""}.png`);
      }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The first picture shows verdicts and a chart, in letters that a phone can show. */
const notInFirstPicture =
  ".key, .facts, .contents, .cards, .sentences details, .sentences a, figure details, #curves-1 > .sub";

async function endOfChart(page) {
  const { y, height } = await page.locator("main > section figure").first().boundingBox();
  return y + height + 12;
}

/** Captures the answers to one question at all steps, from the worst answer of the step with the first evidence. */
async function pictureOfAnswers(page) {
  await page.locator(".to-answers", { hasText: "Worst answers" }).last().click();
  await page.locator("#answers .all-steps").first().click();
  await page.locator("#answers label.marks select").selectOption("start");
  await page.locator("#answers .at-step").first().waitFor();
  const { y, height } = await page.locator("#answers").boundingBox();
  const top = (await page.evaluate("scrollY")) + y;
  await page.addStyleTag({ content: ".contents { visibility: hidden; }" });
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

async function takePicture(page, height, path = file) {
  const { width } = page.viewportSize();
  await page.screenshot({ path, clip: { x: 0, y: 0, width, height }, fullPage: true });
  console.log(path);
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage({
    viewport: { width: 1120, height: 1130 },
    deviceScaleFactor: 1.5,
    bypassCSP: true,
  });
  await (isRun ? pictureOfRun(page) : pictureOfFolder(page));
} finally {
  await browser.close();
}
