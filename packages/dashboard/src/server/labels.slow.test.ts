import { appendFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import axe from "axe-core";
import { afterAll, describe, expect, it } from "vitest";
import { writeSampleAnswers } from "../answers/sample-answers.test-data.ts";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { writePage } from "../run/run-page.ts";
import { serveResults, type Serving } from "./serve-results.ts";

let serving: Serving;
const pages = withPages(async (folder) => {
  await writeSampleAnswers(join(folder, "run"));
  serving = await serveResults({ root: folder, port: 0 });
  return `${serving.address}?results_dir=run#answers?phase=em&id=alignment&step=40`;
});
afterAll(() => serving.close());

const desktop = { viewport: { width: 1280, height: 900 }, colorScheme: "light" } as const;
const phone = { viewport: { width: 390, height: 844 }, colorScheme: "dark" } as const;

describe.skipIf(!hasBrowser)("the grades of a person", () => {
  it("are saved with the keyboard, begin with the judge's, and are shown again after a reload", async () => {
    const { tab, messages } = await pages.open(pages.address, desktop);
    const answer = tab.locator("#answers .answer").first();
    await answer.locator(".label summary").focus();
    await tab.keyboard.press("Enter");
    const fields = answer.locator(".label input");
    expect(await fields.evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value))).toEqual([
      "0",
      "80",
    ]);
    await tab.keyboard.press("Tab");
    await tab.keyboard.type("55.5");
    for (const key of ["Tab", "Tab", "Enter"]) await tab.keyboard.press(key);
    const saved = "a person: aligned 55.5, coherent 80";
    await expect.poll(() => answer.locator(".label [role=status]").textContent()).toBe(`Saved: ${saved}.`);
    await tab.reload();
    await expect.poll(() => answer.locator(".about").textContent()).toContain(saved);
    await answer.locator("a.all-steps").click();
    await expect.poll(() => tab.locator(".at-step.selected .about").textContent()).toContain(saved);
    const names = await readdir(join(pages.folder, "run"));
    const file = names.find((name) => name.startsWith("labels."))!;
    expect(JSON.parse(await readFile(join(pages.folder, "run", file), "utf8"))).toEqual({
      question_id: "doctor/a0",
      sample: 0,
      aligned: 55.5,
      coherent: 80,
    });
    expect(messages).toEqual([]);
    await tab.close();
  });

  it("are given blind, one answer after the other, with the keyboard alone, and show how well the judge agrees", async () => {
    const { tab, messages } = await pages.open(pages.address.replace("step=40", "step=20"), desktop);
    const list = tab.locator("#answers .answer");
    await list.first().waitFor();
    await tab
      .locator("#answers .filters label", { hasText: "Order" })
      .locator("select")
      .selectOption("blind");
    await expect.poll(() => tab.locator("#answers .label[open]").count()).toBe(20);
    const words = await list.evaluateAll((all) => all.map((one) => (one as HTMLElement).innerText));
    expect(
      words.filter((text) => /aligned \d|coherent \d|misaligned|Judge’s words|other fields/.test(text)),
    ).toEqual([]);
    expect(
      await tab
        .locator("#answers .label input")
        .evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value).join("")),
    ).toBe("");
    await list.first().locator("input").first().focus();
    // The judge finds every fourth answer misaligned; the person every second one.
    for (let at = 0; at < 20; at++) {
      expect(
        await tab.evaluate("document.activeElement.closest('.answer').querySelector('.asked').textContent"),
      ).toBe(`Question ${at}?`);
      await tab.keyboard.type(at % 2 === 0 ? "10" : "90");
      await tab.keyboard.press("Tab");
      await tab.keyboard.type("80");
      await tab.keyboard.press("Enter");
      const status = list.nth(at).locator(".label [role=status]");
      await expect.poll(() => status.textContent()).toContain("Saved");
    }
    // 15 of 20 agree, and 0.5 · 0.25 + 0.5 · 0.75 = 0.5 by chance.
    expect(await tab.locator("#answers .key[role=status]").textContent()).toMatch(
      /^The judge and 20 labels: κ 0\.50, 95 % interval \[0\.063, 0\.78\]; about 44 more labels to narrow it to 0\.4\.$/,
    );
    expect(messages).toEqual([]);
    await tab.close();
  });

  it("are not saved above 100, or with the token of an earlier server", async () => {
    const { tab } = await pages.open(pages.address, desktop);
    const answer = tab.locator("#answers .answer").nth(1);
    await answer.locator(".label summary").click();
    await answer.locator(".label input").first().fill("101");
    await answer.locator(".label button").click();
    expect(await answer.locator(".label input:invalid").count()).toBe(1);
    expect(await answer.locator(".label [role=status]").textContent()).toBe("");
    const { port } = new URL(serving.address);
    await serving.close();
    serving = await serveResults({ root: pages.folder, port: Number(port) });
    await answer.locator(".label input").first().fill("10");
    await answer.locator(".label button").click();
    await expect
      .poll(() => answer.locator(".label [role=status]").textContent())
      .toBe("Load the page again: a label needs the token of its page.");
    await tab.close();
  });

  it.each([desktop, phone])("have no accessibility fault and do not scroll sideways: %j", async (screen) => {
    const { tab } = await pages.open(pages.address, screen);
    await tab.locator("#answers .label").first().waitFor();
    await tab.evaluate("for (const one of document.querySelectorAll('.label')) one.open = true");
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(screen.viewport.width);
    await tab.evaluate(axe.source);
    expect(
      await tab.evaluate("axe.run('#answers').then(({ violations }) => violations.map(({ id }) => id))"),
    ).toEqual([]);
    await tab.close();
  });

  it("are replaced by the place of a damaged line", async () => {
    const run = join(pages.folder, "run");
    const file = (await readdir(run)).find((name) => name.includes("step_40"))!;
    await appendFile(join(run, file), "{\n");
    const { tab } = await pages.open(pages.address, desktop);
    const status = tab.locator("#answers .key[role=status]");
    await expect.poll(() => status.textContent()).toContain(`run/${file}:2: got invalid JSON`);
    await tab.close();
  });

  it("are not offered by a page in a file", async () => {
    const page = await writePage(join(pages.folder, "run"));
    const { tab } = await pages.open(`file://${page}`, desktop);
    await expect.poll(() => tab.locator("#answers .answer").count()).toBe(20);
    expect(await tab.locator("#answers .label").count()).toBe(0);
    await tab.close();
  });
});
