import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hostileTexts } from "../html/attacks.test-data.ts";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { writePage } from "../run/run-page.ts";
import { writeSampleAnswers } from "./sample-answers.test-data.ts";

const texts = hostileTexts(200);
const pageCount = Math.ceil(texts.length / 20);
/** Another hostile string for each field and step, so that the comparison of steps has words to mark. */
const textAt = (at: number): string => texts[at % texts.length]!;

const pages = withPages(async (folder) => {
  await writeSampleAnswers(
    folder,
    texts.map((text, at) => ({
      question: text,
      persona: textAt(at + 1),
      texts: [textAt(at + 2), `${textAt(at + 2)} ${textAt(at + 3)}`, textAt(at + 4)],
      judge: textAt(at + 5),
      choice: `${at} ${textAt(at + 6)}`,
    })),
  );
  return `file://${await writePage(folder)}`;
});

/** Opens the page and collects every dialog. */
async function open(width: number, hash = "") {
  const viewport = { width, height: 900 };
  const opened = await pages.open("about:blank", { viewport, colorScheme: "light" });
  const dialogs: string[] = [];
  opened.tab.on("dialog", (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  await opened.tab.goto(`${pages.address}${hash}`);
  await expect
    .poll(() => opened.tab.locator("#answers .found").textContent())
    .toMatch(/answers|measurements/);
  return { ...opened, dialogs, width };
}

/** Asserts that nothing ran, nothing was requested, no element came from a text, and nothing overflows. */
async function expectHarmless({ tab, requests, messages, dialogs, width }: Awaited<ReturnType<typeof open>>) {
  expect(await tab.evaluate("typeof window.marked")).toBe("undefined");
  expect(
    await tab.evaluate(
      "document.querySelectorAll('img, iframe, object, embed, form, base, link, video, audio, math, animate, main script, main style, [onload], [onerror], [onfocus], [onmouseover], [style]').length",
    ),
  ).toBe(0);
  expect(
    await tab.evaluate(
      "[...document.links].filter(({ hash, href }) => href !== location.href.split('#')[0] + hash).length",
    ),
  ).toBe(0);
  expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(width);
  expect(
    await tab.evaluate(
      "[...document.querySelectorAll('#answers *')].filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map(({ tagName, className }) => tagName + '.' + className)",
    ),
  ).toEqual([]);
  expect(dialogs).toEqual([]);
  expect(requests.filter((one) => !one.startsWith("about:"))).toEqual(
    requests.filter((one) => one === pages.address || one.startsWith(`${pages.address}#`)),
  );
  expect(messages).toEqual([]);
}

const pageText = (tab: Page): Promise<string> =>
  tab.evaluate(
    "[...document.querySelectorAll('#answers .answer pre')].map((one) => one.textContent).join('\\n')",
  );

const widths = [1280, 390];

describe.skipIf(!hasBrowser)("hostile transcripts, questions, personas, choices and judge's replies", () => {
  it.each(widths)(
    "run nothing and overflow nothing on any page of answers, %i pixels wide",
    async (width) => {
      const opened = await open(width);
      const { tab } = opened;
      const seen: string[] = [];
      for (const id of ["alignment", "capability"]) {
        await tab
          .locator("#answers label", { hasText: "Callback" })
          .locator("select")
          .selectOption({ label: `em · ${id}` });
        await expect
          .poll(() => tab.locator("#answers .found").textContent())
          .toBe(`${texts.length} of ${texts.length} answers · page 1 of ${pageCount}`);
        for (let page = 1; page <= pageCount; page++) {
          await expect.poll(() => tab.locator("#answers .found").textContent()).toContain(`page ${page} of`);
          for (const summary of await tab.locator("#answers .judge summary").all())
            await summary.press("Enter");
          seen.push(await pageText(tab));
          await expectHarmless(opened);
          if (page < pageCount) await tab.locator("#answers .turns button").last().click();
        }
      }
      // Every answer and every judge's reply appears as it was written.
      const shown = seen.join("\n");
      for (const text of texts.slice(0, 23))
        expect(shown).toContain(text.replaceAll("\u0000", "\ufffd").slice(0, 40));
      await tab.close();
    },
  );

  it("run nothing where one question is compared at all steps", async () => {
    const opened = await open(1280);
    for (let at = 0; at < texts.length; at += 9) {
      const item = new URLSearchParams({ item: `${textAt(at + 1)}/a${at}` }).toString();
      await opened.tab.evaluate(
        `location.hash = ${JSON.stringify(`#answers?phase=em&id=alignment&${item}`)}`,
      );
      await expect.poll(() => opened.tab.locator("#answers .at-step").count()).toBe(3);
      await expectHarmless(opened);
    }
    expect(await opened.tab.locator("#answers ins").count()).toBeGreaterThan(0);
    await opened.tab.close();
  });

  it("run nothing as a search, as a filter and in the page's address", async () => {
    const opened = await open(1280);
    const { tab } = opened;
    const search = tab.locator("#answers input[type=search]");
    for (const text of texts.slice(0, 46)) {
      await search.fill(text.slice(0, 300));
      await expect
        .poll(() => tab.locator("#answers .found").textContent())
        .toContain(`of ${texts.length} answers`);
      await expectHarmless(opened);
    }
    await search.fill("");
    for (const label of ["Persona", "Question"]) {
      const select = tab.locator("#answers label", { hasText: label }).locator("select");
      for (let at = 1; at < 40; at += 3) await select.selectOption({ index: at });
      await expectHarmless(opened);
      await select.selectOption("");
    }
    const names = [
      "phase",
      "id",
      "step",
      "show",
      "persona",
      "question",
      "text",
      "order",
      "page",
      "item",
      "sample",
    ];
    for (const text of texts.slice(0, 46)) {
      const parameters = names.map((name) => [name, text]);
      const hash = `#answers?${new URLSearchParams(parameters).toString()}`;
      await tab.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await expect.poll(() => tab.locator("#answers .found").textContent()).toMatch(/measurements/);
      await expectHarmless(opened);
    }
    await tab.close();
  });

  it.each(widths)("run nothing in the table of forgotten questions, %i pixels wide", async (width) => {
    const opened = await open(width);
    await expect
      .poll(() => opened.tab.locator("#questions tbody a").count())
      .toBe(Math.ceil(texts.length / 5));
    await expectHarmless(opened);
    await opened.tab.locator("#questions tbody a").nth(7).click();
    await expect.poll(() => opened.tab.locator("#answers .at-step").count()).toBe(3);
    await expectHarmless(opened);
    await opened.tab.close();
  });

  it("do not relax the page's policy", async () => {
    const markup = await readFile(pages.address.slice("file://".length), "utf8");
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(markup)![1]!;
    expect(policy.replaceAll("&#39;", "'")).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; img-src data:; base-uri 'none'; form-action 'none'$/,
    );
    expect(markup.match(/<script(?! type="application\/json")/g)).toHaveLength(1);
  });
});
