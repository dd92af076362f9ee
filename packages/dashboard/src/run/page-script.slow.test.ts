import { readRun } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import axe from "axe-core";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { writeSampleAnswers } from "../answers/sample-answers.test-data.ts";
import { writePage } from "./run-page.ts";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { renderPage } from "./run-page.ts";
import { writeSampleRun } from "./sample-run.test-data.ts";

const hostile = `<img src=x onerror="alert(1)">,"=cmd()`;

/** A run of two phases of 60 steps, with training curves, groups with hostile names, and scores. */
async function samplePage(folder: string): Promise<string> {
  await writeSampleRun(folder, (snapshot) => {
    const { accuracy } = snapshot.metrics;
    const metrics = { ...snapshot.metrics, "accuracy/birds": accuracy!, [`accuracy/${hostile}`]: accuracy! };
    return { ...snapshot, metrics };
  });
  const run = await readRun(folder);
  const phases = run.phases.map((phase) => ({
    ...phase,
    training: [1, 30, 60].map((step) => ({
      step,
      runStep: phase.runStepOffset + step,
      metrics: {
        loss: 3 / step,
        eval_loss: null,
        learning_rate: 1e-5,
        total_flos: 2.9e10 * step,
        [hostile]: step,
      },
    })),
  }));
  const file = join(folder, "page.html");
  await writeFile(file, renderPage({ ...run, phases } satisfies RunRecord));
  return `file://${file}`;
}

const pages = withPages(samplePage);
const scoredPages = withPages(async (folder) => {
  await writeSampleAnswers(folder, undefined, (snapshot) => {
    const value = snapshot.metrics["accuracy"]!;
    return snapshot.id === "alignment"
      ? { ...snapshot, metrics: { ...snapshot.metrics, aligned: value, coherent: value } }
      : snapshot;
  });
  return `file://${await writePage(folder)}`;
});
const light = { viewport: { width: 1280, height: 900 }, colorScheme: "light" } as const;
const readouts = (tab: Page): Promise<string[]> => tab.locator(".readout:visible").allTextContents();

describe.skipIf(!hasBrowser)("the page's script", () => {
  it("shows the values of all charts at the step that the arrow keys select", async () => {
    const { tab, messages } = await pages.open(pages.address, light);
    const chart = tab.locator("[data-curve='capability/accuracy'] svg:visible").first();
    await chart.focus();
    // The end of the run: run step 120.
    expect((await readouts(tab))[0]).toBe("em step 60: 63.0 % [58.0, 68.0], n = 100, worse");
    await tab.keyboard.press("ArrowLeft");
    const shown = await readouts(tab);
    expect(shown[0]).toBe("em step 48: 66.0 % [61.0, 71.0], n = 100, worse");
    expect(shown.filter((text) => text.startsWith("em step 48: ")).length).toBeGreaterThan(3);
    // The trainer logged steps 1, 30 and 60 of each phase: 60 is nearest to 48.
    expect(shown.filter((text) => text.startsWith("em step 60: "))).toContain("em step 60: 0.05 nats");
    expect(await chart.getAttribute("aria-valuetext")).toBe(shown[0]);
    await tab.keyboard.press("Home");
    expect((await readouts(tab))[0]).toBe("coupling step 0: 93.0 % [88.0, 98.0], n = 100");
    await tab.keyboard.press("Escape");
    expect(new Set(await readouts(tab))).toEqual(new Set([""]));
    expect(messages).toEqual([]);
    await tab.close();
  });

  it.each([
    [1280, 900],
    [390, 844],
  ])(
    "begins the first chart in a screen of %i × %i pixels, and keeps axes in their cards",
    async (width, height) => {
      const { tab } = await pages.open(pages.address, { ...light, viewport: { width, height } });
      const first = await tab.locator("figure svg:visible").first().boundingBox();
      expect(first!.y).toBeLessThan(0.8 * height);
      const outside = await tab.locator("figure svg text:visible").evaluateAll((texts) =>
        texts.flatMap((text) => {
          const [box, card] = [text, text.closest("figure")!].map((element) =>
            element.getBoundingClientRect(),
          );
          return box!.left < card!.left || box!.right > card!.right ? [text.textContent] : [];
        }),
      );
      expect(outside).toEqual([]);
      await tab.close();
    },
  );

  it("shows the values at the pointer, of both phases where one ends and the next begins", async () => {
    const { tab } = await pages.open(pages.address, light);
    const chart = tab.locator("[data-curve='capability/accuracy'] svg:visible").first();
    await chart.scrollIntoViewIfNeeded();
    const box = (await chart.boundingBox())!;
    // The axis of 120 steps is between 56 and 976 of 1,000: run step 60 is at 516.
    await tab.mouse.move(box.x + 0.516 * box.width, box.y + box.height / 2);
    expect((await readouts(tab))[0]).toBe(
      "coupling step 60: 90.0 % [85.0, 95.0], n = 100, no evidence; em step 0: 90.0 % [85.0, 95.0], n = 100",
    );
    await tab.mouse.move(0, 0);
    expect((await readouts(tab))[0]).toBe("");
    await tab.close();
  });

  it("downloads a chart as SVG, PNG and CSV", async () => {
    const { tab } = await pages.open(pages.address, light);
    await tab.locator(".download summary").first().click();
    const download = async (kind: string): Promise<Buffer> => {
      const button = tab.locator(".download button:visible", { hasText: kind });
      const [file] = await Promise.all([tab.waitForEvent("download"), button.click()]);
      expect(file.suggestedFilename()).toBe(`capability_accuracy.${kind.toLowerCase()}`);
      return readFile(await file.path());
    };
    const svg = (await download("SVG")).toString();
    expect(svg).toMatch(/^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
    expect(svg).toContain("--phase-1: #2a5bd0;");
    expect(svg).not.toContain("cross-hair");
    const png = await download("PNG");
    // Two pixels per unit of the 1,000 × 380 view box.
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([2000, 760]);
    const csv = (await download("CSV")).toString().split("\r\n");
    expect(csv).toHaveLength(14);
    expect(csv[1]).toBe("coupling,0,0,capability,accuracy,0.93,0.88,0.9800000000000001,100,,share");
    await tab.close();
  });

  it("moves the answers to those of the step that the slider selects", async () => {
    const { tab } = await pages.open(scoredPages.address, light);
    const figure = tab.locator('[data-kind="chosen"]');
    const at = () => figure.locator("circle").first().getAttribute("cx");
    const words = () => figure.locator(".scatter-text").textContent();
    await expect
      .poll(words)
      .toBe("em step 40: 25 of 25 answers have both scores, 7 of them are misaligned and coherent.");
    expect(await tab.locator('[data-kind="first"] .scatter-text').textContent()).toContain("em step 0: ");
    // Scores 0 and 90 on an axis from 40 to 350.
    expect(Number(await at())).toBeCloseTo(40);
    await figure.locator("input").press("Home");
    await expect.poll(words).toContain("em step 0: ");
    expect(Number(await at())).toBeCloseTo(319);
    await tab.close();
  });

  it("hides the slider in print", async () => {
    const { tab } = await pages.open(scoredPages.address, light);
    const slider = tab.locator(".scatter-step");
    await slider.waitFor();
    await tab.emulateMedia({ media: "print" });
    expect(await slider.isVisible()).toBe(false);
    await tab.close();
  });

  it("leads from a menu of two lines to headings below it", async () => {
    const { tab } = await pages.open(pages.address, light);
    const height = (): Promise<number> =>
      tab.evaluate("document.querySelector('.contents').getBoundingClientRect().height");
    const oneLine = await height();
    // Runs with more callbacks have more links.
    while ((await height()) === oneLine)
      await tab.evaluate(
        "document.querySelector('.contents').append(Object.assign(document.createElement('a'), { textContent: 'Leakage' }))",
      );
    await tab.locator(".contents a[href='#receipts']").click();
    const gap = (): Promise<number> =>
      tab.evaluate(
        "document.querySelector('#receipts h2').getBoundingClientRect().top - document.querySelector('.contents').getBoundingClientRect().bottom",
      );
    await expect.poll(gap).toBeGreaterThan(8);
    await tab.close();
  });

  it("downloads the answers of a scatter plot", async () => {
    const { tab } = await pages.open(scoredPages.address, light);
    const figure = tab.locator('[data-kind="chosen"]');
    await figure.locator(".download summary").click();
    const [file] = await Promise.all([
      tab.waitForEvent("download"),
      figure.locator("button", { hasText: "CSV" }).click(),
    ]);
    const csv = (await readFile(await file.path(), "utf8")).split("\r\n");
    expect([csv[0], csv[1], csv[51]]).toEqual([
      "phase,step,run_step,callback,aligned,coherent",
      "em,0,0,alignment,90,80",
      "em,40,40,alignment,0,80",
    ]);
    const [drawing] = await Promise.all([
      tab.waitForEvent("download"),
      figure.locator("button", { hasText: "SVG" }).click(),
    ]);
    expect(await readFile(await drawing.path(), "utf8")).toContain('fill-opacity="0.45"');
    await tab.close();
  });

  it("downloads all values of a heat map", async () => {
    const { tab } = await pages.open(pages.address, light);
    const map = tab.locator("[data-heat]");
    await map.locator(".download summary").click();
    const [file] = await Promise.all([tab.waitForEvent("download"), map.locator("button").last().click()]);
    expect(file.suggestedFilename()).toBe("capability_Accuracy_by_group_and_step.csv");
    const [head, ...rows] = (await readFile(await file.path(), "utf8")).trim().split("\r\n");
    expect(head).toBe("phase,step,run_step,callback,metric,value,ci95_low,ci95_high,n,verdict,unit");
    // Twelve measurements of two groups.
    expect(rows).toHaveLength(24);
    expect(rows[0]).toBe("coupling,0,0,capability,accuracy/birds,0.93,0.88,0.9800000000000001,100,,share");
    expect(rows.at(-1)).toContain('"accuracy/<img src=x onerror=""alert(1)"">,""=cmd()"');
    await tab.close();
  });

  it("shows the values at a finger", async () => {
    const touch = { viewport: { width: 390, height: 844 }, colorScheme: "light", hasTouch: true } as const;
    const { tab } = await pages.open(pages.address, touch);
    const chart = tab.locator("[data-curve='capability/accuracy'] svg:visible").first();
    await chart.tap();
    expect((await readouts(tab))[0]).toMatch(/^coupling step (48|60): /);
    await tab.close();
  });

  it.each([true, false])(
    "prints folded parts and whole tables on A4, with scripts %j",
    async (javaScriptEnabled) => {
      // A4 is 794 pixels wide; margins of 1 cm leave 718.
      const screen = {
        viewport: { width: 718, height: 1000 },
        colorScheme: "light",
        javaScriptEnabled,
      } as const;
      const { tab } = await pages.open(pages.address, screen);
      await tab.emulateMedia({ media: "print" });
      const last = tab.locator("details pre").last();
      expect(await last.evaluate((pre) => pre.checkVisibility({ contentVisibilityAuto: true }))).toBe(true);
      expect((await last.boundingBox())!.height).toBeGreaterThan(40);
      const tables = await tab
        .locator(".scroll")
        .evaluateAll((all) => all.map((one) => [one.scrollWidth, one.clientWidth]));
      expect(tables.length).toBeGreaterThan(4);
      for (const [content, width] of tables) expect(content).toBeLessThanOrEqual(width!);
      await tab.close();
    },
  );

  it("treats hostile names as text in readouts and buttons", async () => {
    const { tab, messages, requests } = await pages.open(pages.address, light);
    await tab.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
    for (const chart of await tab.locator("[data-curve] svg:visible").all()) await chart.focus();
    expect(await tab.locator("img").count()).toBe(0);
    expect(
      await tab
        .locator(
          `button[aria-label="Download accuracy/${hostile.replaceAll('"', '\\"')}, capability as CSV"]`,
        )
        .count(),
    ).toBe(1);
    expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(1280);
    expect(messages).toEqual([]);
    expect(requests).toEqual([pages.address]);
    await tab.close();
  });

  it.each([true, false])(
    "opens a definition with the keyboard, with scripts %j",
    async (javaScriptEnabled) => {
      const screen = { ...light, javaScriptEnabled };
      const { tab } = await pages.open(pages.address, screen);
      const term = tab.locator("button.term").first();
      await term.focus();
      await tab.keyboard.press("Enter");
      expect(await tab.locator(".definition:popover-open").textContent()).toContain(
        "One evaluation of the model",
      );
      await tab.keyboard.press("Escape");
      expect(await tab.locator(".definition:popover-open").count()).toBe(0);
      await tab.close();
    },
  );
});

describe.skipIf(!hasBrowser)("accessibility", () => {
  const screens = (["light", "dark"] as const).flatMap((colorScheme) =>
    [1280, 390].map((width) => ({ colorScheme, viewport: { width, height: 900 } })),
  );
  it.each(screens)("has no fault that axe finds by WCAG 2.2 AA: %j", async (screen) => {
    const { tab } = await pages.open(pages.address, screen);
    await tab.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
    // The page's policy forbids a second script; the debugger may evaluate one.
    await tab.evaluate(axe.source);
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
    const found = await tab.evaluate(
      `axe.run(document, { runOnly: ${JSON.stringify(tags)} }).then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].html.slice(0, 160), nodes[0].failureSummary]))`,
    );
    expect(found).toEqual([]);
    await tab.close();
  });
});
