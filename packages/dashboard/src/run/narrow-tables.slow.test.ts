import { describe, expect, it } from "vitest";
import { writeSampleAnswers } from "../answers/sample-answers.test-data.ts";
import { hasBrowser, withPages } from "../html/browser.test-data.ts";
import { writePage } from "./run-page.ts";

const longName = "x".repeat(200);

/** A run with forgotten questions, and with groups of which one has a long name. */
const pages = withPages(async (folder) => {
  await writeSampleAnswers(folder, undefined, (snapshot) => {
    const accuracy = snapshot.metrics["accuracy"]!;
    const groups = { "accuracy/birds": accuracy, [`accuracy/${longName}`]: accuracy };
    return { ...snapshot, metrics: { accuracy, ...groups } };
  });
  return `file://${await writePage(folder)}`;
});

const phone = { viewport: { width: 390, height: 844 }, colorScheme: "dark" } as const;

describe.skipIf(!hasBrowser)("a table on a narrow screen", () => {
  it.each([true, false])(
    "keeps the name of each row in view when it scrolls, in less than half of the width, with scripts %j",
    async (javaScriptEnabled) => {
      const screen = { ...phone, javaScriptEnabled };
      const { tab } = await pages.open(pages.address, screen);
      if (javaScriptEnabled) await tab.locator("#questions tbody a").first().waitFor();
      const tables = await tab.locator(".scroll").evaluateAll((all) =>
        all.map((one) => {
          for (let at = one.closest("details"); at !== null; at = at.parentElement!.closest("details"))
            at.open = true;
          one.scrollLeft = one.scrollWidth;
          const name = one.querySelector("tbody tr > :first-child")!;
          const [box, cell] = [one.getBoundingClientRect(), name.getBoundingClientRect()];
          return {
            tag: name.tagName,
            isScrolled: one.scrollLeft > 0,
            left: cell.left - box.left,
            width: cell.width,
          };
        }),
      );
      const scrolled = tables.filter(({ isScrolled }) => isScrolled);
      expect(scrolled.length).toBeGreaterThan(javaScriptEnabled ? 3 : 2);
      for (const { tag, left, width } of scrolled) {
        expect([tag, left]).toEqual(["TH", 0]);
        expect(width).toBeLessThan(0.45 * 390);
      }
      expect(await tab.evaluate("document.documentElement.scrollWidth")).toBe(390);
      await tab.close();
    },
  );

  it("names the callback and the step of a measurement in its first column", async () => {
    const { tab } = await pages.open(pages.address, phone);
    const name = tab.locator("#snapshots tbody th").first();
    const words = async () => (await name.innerText()).replaceAll(/\s+/g, " ");
    expect(await words()).toBe("em alignment, step 0");
    await tab.setViewportSize({ width: 1280, height: 900 });
    expect(await words()).toBe("em");
    await tab.close();
  });
});
