import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { writeSampleAnswers } from "../answers/sample-answers.test-data.ts";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { pdfPages, withoutSpaces } from "../html/pdf-text.test-data.ts";
import { writePage } from "./run-page.ts";

/** Measurements of the later phase: its table covers more than one sheet. */
const measurements = 90;

const pages = withPages(async (folder) => {
  await writeSampleAnswers(folder);
  const store = fileStore(folder);
  for (let step = 0; step < measurements; step++)
    await store.put(
      exampleSnapshot({
        phase: "later",
        step,
        run_step: 40 + step,
        max_steps: measurements,
        created_at: "2026-01-02T00:00:00.000Z",
      }),
      [],
    );
  await store.close!();
  return `file://${await writePage(folder)}`;
});

/** Texts that the printed page shows, as the browser lays them out for print. */
const shownTexts = `[...document.querySelectorAll("h1, h2, h3, p, li, dt, dd, th, td, caption, summary, pre, figcaption, footer")]
  .filter((one) => one.checkVisibility({ contentVisibilityAuto: true }) && !one.closest("svg"))
  .map((one) => one.innerText)`;

describe.skipIf(!hasBrowser)("a page printed on A4", () => {
  let shown: readonly string[];
  let headings: readonly string[];
  let sheets: readonly string[];
  beforeAll(async () => {
    const screen = { viewport: { width: 718, height: 1000 }, colorScheme: "light" } as const;
    const { tab } = await pages.open(pages.address, screen);
    await tab.locator("#answers .found", { hasText: "answers" }).waitFor();
    sheets = pdfPages(await tab.pdf({ format: "A4" }));
    await tab.emulateMedia({ media: "print" });
    shown = ((await tab.evaluate(shownTexts)) as string[]).map(withoutSpaces);
    headings = (await tab.locator("thead tr").allTextContents()).map(withoutSpaces);
    await tab.close();
  });

  it("has every text of the page", () => {
    const text = sheets.join("");
    expect(shown.length).toBeGreaterThan(1000);
    expect(shown.filter((one) => !text.includes(one))).toEqual([]);
  });

  it("says how many answers it leaves out and where they are", () => {
    const text = sheets.join("");
    expect(text).toContain(
      withoutSpaces("Printed: 20 of the 25 selected answers of em, alignment, step 40."),
    );
    expect(text).toContain(withoutSpaces("The page on a screen shows the other answers"));
  });

  it("opens its folded parts while it is printed, for browsers that do not know ::details-content", async () => {
    const screen = { viewport: { width: 718, height: 1000 }, colorScheme: "light" } as const;
    const { tab } = await pages.open(pages.address, screen);
    const folded = async (event: string) => {
      await tab.evaluate(`dispatchEvent(new Event("${event}"))`);
      return tab.locator("details:not([open])").count();
    };
    const before = await tab.locator("details:not([open])").count();
    expect(before).toBeGreaterThan(0);
    expect([await folded("beforeprint"), await folded("afterprint")]).toEqual([0, before]);
    await tab.close();
  });

  it("repeats the whole heading of a table on each of its sheets, with the terms that have a definition", () => {
    // Chromium paints no button in the heading that it repeats, so a term is printed as plain text.
    const heading = headings.find((one) => one.includes("paireditems"))!;
    expect(heading).toBe("phasestep%measuredvalue95%intervalnchangepaireditemsverdicttimeundisturbedstatus");
    const begun = sheets.filter((one) => one.includes("phasestep%measured"));
    expect(begun.length).toBeGreaterThan(2);
    for (const sheet of begun) expect(sheet).toContain(heading);
  });
});
