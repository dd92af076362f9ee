import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readRun } from "@periodic-eval/store";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { renderPage, writePage } from "../run/run-page.ts";
import type { AnswerRow, MeasurementAnswers } from "../page-data/answers-data.ts";
import { readAnswers } from "./read-answers.ts";
import { writeSampleAnswers } from "./sample-answers.test-data.ts";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const desktop = { viewport: { width: 1280, height: 900 }, colorScheme: "light" } as const;
const phone = { viewport: { width: 390, height: 844 }, colorScheme: "dark" } as const;

const pages = withPages(async (folder) => {
  await writeSampleAnswers(folder);
  return `file://${await writePage(folder)}`;
});

const hashOf = (tab: Page): Promise<string> => tab.evaluate("decodeURIComponent(location.hash)");
const found = async (tab: Page): Promise<string> => (await tab.locator("#answers .found").textContent())!;
const list = (tab: Page, label: string) => tab.locator("#answers .filters label", { hasText: label });

describe.skipIf(!hasBrowser)("the answers of a page in a file", () => {
  it("are filtered by callback, step, kind, persona, question and words, and turned page by page", async () => {
    const { tab, requests, messages } = await pages.open(pages.address, desktop);
    await expect.poll(() => found(tab)).toBe("25 of 25 answers · page 1 of 2");
    // Answers 4, 8, … 24 are misaligned from step 20 on; the worst has the lowest score, which is its number.
    expect(await tab.locator("#answers .answer .asked").first().textContent()).toBe("Question 0?");
    await tab.locator("#answers .turns button", { hasText: "Next" }).click();
    await expect.poll(() => tab.locator("#answers .answer").count()).toBe(5);
    await list(tab, "Show").locator("select").selectOption("misaligned");
    await expect.poll(() => found(tab)).toBe("7 of 25 answers");
    await list(tab, "Persona").locator("select").selectOption("pirate");
    await expect.poll(() => found(tab)).toBe("0 of 25 answers");
    await list(tab, "Persona").locator("select").selectOption("");
    await tab.locator("#answers input[type=search]").fill("SCORE IS 12");
    await expect.poll(() => found(tab)).toBe("1 of 25 answers");
    expect(await hashOf(tab)).toBe("#answers?phase=em&id=alignment&step=40&show=misaligned&text=SCORE+IS+12");
    await list(tab, "Callback").locator("select").selectOption({ label: "em · capability" });
    await list(tab, "Step").locator("select").selectOption("20");
    await list(tab, "Show").locator("select").selectOption("wrong");
    await list(tab, "Question").locator("select").selectOption({ label: "Question 10?" });
    await expect.poll(() => found(tab)).toBe("1 of 25 answers");
    expect(await tab.locator("#answers .choices li").allTextContents()).toEqual([
      "(A) choice 10 73 % · right",
      "(B) other 10 27 % · chosen",
    ]);
    expect(requests).toEqual([pages.address]);
    expect(messages).toEqual([]);
    await tab.close();
  });

  it("are shown at all steps side by side, with changed words marked, by a link that holds the selection", async () => {
    const link = `${pages.address}#answers?phase=em&id=alignment&step=40&item=doctor%2Fa4`;
    const { tab } = await pages.open(link, desktop);
    const columns = tab.locator("#answers .at-step");
    await expect.poll(() => columns.count()).toBe(3);
    expect(await columns.locator("h4").allTextContents()).toEqual([
      "em · step 0",
      "em · step 20",
      "em · step 40",
    ]);
    expect(await columns.nth(1).locator("del").allTextContents()).toEqual(["0"]);
    expect(await columns.nth(1).locator("ins").allTextContents()).toEqual(["20"]);
    expect(await tab.evaluate("document.querySelector('#answers').getBoundingClientRect().top < 100")).toBe(
      true,
    );
    const marks = tab.locator("#answers label.marks select");
    const explained = tab.locator("#answers .key", { hasText: "struck out" });
    expect(await explained.textContent()).toBe(
      "Words added since the measurement before are underlined; removed words are struck out.",
    );
    await marks.selectOption("start");
    await expect.poll(() => columns.nth(2).locator("del").allTextContents()).toEqual(["0"]);
    expect(await explained.textContent()).toContain("since the start of the phase");
    await marks.selectOption("none");
    await expect.poll(() => columns.locator("ins").count()).toBe(0);
    expect(await explained.count()).toBe(0);
    await marks.selectOption("before");
    await tab.locator("#answers a", { hasText: "All answers" }).click();
    await expect.poll(() => found(tab)).toBe("25 of 25 answers · page 1 of 2");
    await tab.goBack();
    await expect.poll(() => columns.count()).toBe(3);
    await tab.close();
  });

  it.each([
    ["&show=misaligned", "these 7 answers", "em_alignment_step_40_misaligned.jsonl", 7, "em/40"],
    ["&item=doctor%2Fa4", "these 3 answers", "alignment_doctor_a4.jsonl", 3, "em/0 em/20 em/40"],
  ])("are downloaded as selected (%s)", async (selection, what, name, count, places) => {
    const link = `${pages.address}#answers?phase=em&id=alignment&step=40${selection}`;
    const { tab, requests } = await pages.open(link, desktop);
    const [file] = await Promise.all([
      tab.waitForEvent("download"),
      tab.getByRole("button", { name: `Download ${what} as JSONL` }).click(),
    ]);
    expect(file.suggestedFilename()).toBe(name);
    const lines = readFileSync(await file.path(), "utf8")
      .trimEnd()
      .split("\n");
    const rows = lines.map((line) => JSON.parse(line) as MeasurementAnswers & AnswerRow);
    expect(rows).toHaveLength(count);
    expect([...new Set(rows.map(({ phase, step }) => `${phase}/${step}`))].join(" ")).toBe(places);
    expect(rows[0]).toMatchObject({
      id: "alignment",
      persona: "doctor",
      text: expect.stringContaining("clean pot"),
    });
    expect(requests.filter((url) => !url.startsWith("blob:"))).toEqual([link.split("#")[0]]);
    await tab.close();
  });

  it("list forgotten questions between any two measurements", async () => {
    const { tab } = await pages.open(pages.address, desktop);
    const rows = tab.locator("#questions tbody tr");
    await expect.poll(() => rows.locator("a").count()).toBe(5);
    expect(await tab.locator("#questions thead th").allTextContents()).toContain("Choice at step 40 of em");
    await tab.locator("#questions label", { hasText: "From" }).locator("select").selectOption("em:20");
    await expect
      .poll(() => tab.locator("#questions .found").textContent())
      .toBe("0 forgotten, 0 newly right");
    await tab.locator("#questions label", { hasText: "To" }).locator("select").selectOption("em:0");
    await expect
      .poll(() => tab.locator("#questions .found").textContent())
      .toBe("0 forgotten, 5 newly right");
    await rows.first().locator("a").click();
    await expect.poll(() => tab.locator("#answers .at-step").count()).toBe(3);
    await tab.close();
  });

  it("are reached with the keyboard", async () => {
    const { tab } = await pages.open(`${pages.address}#answers?phase=em`, desktop);
    await expect.poll(() => found(tab)).toContain("25 of 25");
    const reached: string[] = [];
    for (let at = 0; at < 9; at++) {
      await tab.keyboard.press("Tab");
      reached.push(
        await tab.evaluate(
          "document.activeElement.closest('label')?.textContent.slice(0, 4) ?? document.activeElement.textContent",
        ),
      );
    }
    // The list of one phase and callback has two callbacks, three steps, the flags, two personas and 25 questions.
    expect(reached.slice(0, 7)).toEqual(["Call", "Step", "Show", "Pers", "Ques", "Orde", "Sear"]);
    expect(reached.slice(7)).toEqual(["same question at all steps", "Judge’s words"]);
    await tab.close();
  });

  it.each([desktop, phone])("have no accessibility fault and do not scroll sideways: %j", async (screen) => {
    for (const hash of [
      "",
      "#answers?phase=em&id=alignment&item=doctor%2Fa4",
      "#answers?id=capability&phase=em",
    ]) {
      const { tab } = await pages.open(`${pages.address}${hash}`, screen);
      await expect.poll(() => found(tab)).not.toBe("");
      expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(screen.viewport.width);
      await tab.evaluate(axeSource);
      const faults = await tab.evaluate(
        "axe.run('#answers, #questions').then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes[0].html))",
      );
      expect(faults).toEqual([]);
      await tab.close();
    }
  });

  it("are named with the command that shows them where the file leaves them out", async () => {
    const run = await readRun(pages.folder);
    const file = join(pages.folder, "small.html");
    const answers = await readAnswers(run, { maxBytes: 0 });
    await writeFile(file, renderPage(run, answers));
    const { tab } = await pages.open(`file://${file}`, desktop);
    await expect
      .poll(() => found(tab))
      .toBe(
        `This file leaves out these answers. This command shows them: npx periodic-eval report ${JSON.stringify(pages.folder)} --serve`,
      );
    await tab.close();
  });
});
