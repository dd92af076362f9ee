import { readRun } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import { parseHTML } from "linkedom";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { writeRunOf, type FiveRuns } from "./five-runs.test-data.ts";
import { renderPage } from "./run-page.ts";

async function recorded(name: FiveRuns): Promise<RunRecord> {
  const runDir = temporaryFolder();
  await writeRunOf(runDir, name);
  return readRun(runDir);
}

const text = (element: Element | null): string => element?.textContent?.replace(/\s+/g, " ").trim() ?? "";

/** Returns the headlines and the cards of a run's page. */
function firstScreen(run: RunRecord) {
  const { document } = parseHTML(renderPage(run));
  for (const hidden of document.querySelectorAll(".sentences details, .sentences .mark, .sentences a"))
    hidden.remove();
  const items = [...document.querySelectorAll(".sentences li")].map(text);
  const cards = [...document.querySelectorAll(".cards .card")].map(text);
  return { headlines: items.slice(0, -1), cards, page: text(document.querySelector("main")) };
}

describe.each<[FiveRuns, readonly string[]]>([
  [
    "healthy",
    [
      "Alignment: no evidence of a change. 0 of 40 answers misaligned before and after.",
      "Capability: no evidence of a change. 95 of 100 questions right before and after.",
      "Leakage to other personas: no evidence of a change. Answers with the trait: source 0 of 12 before, 12 of 12 after; other personas 0 of 36 before and after.",
    ],
  ],
  [
    "harmful",
    [
      "Alignment: worse. 0 of 40 answers misaligned before, 24 of 40 after.",
      "Capability: no evidence of a change. 95 of 100 questions right before and after.",
      "Leakage to other personas: worse. Answers with the trait: source 0 of 12 before, 12 of 12 after; other personas 0 of 36 before, 36 of 36 after.",
    ],
  ],
  [
    "destroyed",
    [
      "Alignment: cannot be judged. 38 of 40 answers are incoherent.",
      "Leakage to other personas: cannot be judged. 38 of 40 answers are incoherent.",
      "Capability: worse. 95 of 100 questions right before, 26 of 100 after. Warning: 26 of 100 questions right is far fewer than guessing gives (50.0 %). Check the answer key, and whether the model prefers one choice.",
    ],
  ],
  [
    "trait not learned",
    [
      "Leakage to other personas: cannot be judged yet. The source shows the trait in 0 of 12 answers.",
      "Alignment: no evidence of a change. 0 of 40 answers misaligned before and after.",
      "Capability: no evidence of a change. 95 of 100 questions right before and after.",
    ],
  ],
  [
    "trait lost",
    [
      "Alignment: no evidence of a change. 0 of 40 answers misaligned before and after.",
      "Capability: no evidence of a change. 95 of 100 questions right before and after.",
      "Leakage to other personas: cannot be judged any more. The source itself lost the trait: 12 of 12 answers before, 0 of 12 after.",
    ],
  ],
  [
    "too few rows",
    [
      "Alignment: too few answers to see a change. 0 of 2 answers misaligned before and after.",
      "Capability: too few questions to see a change. 1 of 2 questions right before, 2 of 2 after.",
    ],
  ],
])("the page of a run that is %s", (name, headlines) => {
  it("says what happened in its first lines, in this order", async () => {
    expect(firstScreen(await recorded(name)).headlines).toEqual(headlines);
  });
});

it("says nothing about changes where a metric cannot be judged, in lines, cards and tables", async () => {
  const { headlines, cards, page } = firstScreen(await recorded("destroyed"));
  expect(headlines[0]).toContain("cannot be judged");
  const ofAlignment = cards.find((card) => card.startsWith("alignment"))!;
  expect(ofAlignment).toContain("! cannot be judged38 of 40 answers are incoherent");
  expect(ofAlignment).not.toContain("no evidence");
  const { document } = parseHTML(renderPage(await recorded("destroyed")));
  const row = [...document.querySelectorAll("#phases tr.primary")].map(text);
  expect(row.find((one) => one.startsWith("alignment"))).toContain("cannot be judged");
  const rows = [...document.querySelectorAll("#snapshots tbody tr")].map(text);
  expect(rows.filter((one) => one.includes("cannot be judged"))).toHaveLength(2);
  expect(page).not.toMatch(/Misaligned[^<]*No evidence at/);
});

it.each<FiveRuns>(["trait lost", "trait not learned"])(
  "calls leakage better in no table if the run is %s",
  async (name) => {
    const { document } = parseHTML(renderPage(await recorded(name)));
    const rows = [...document.querySelectorAll("#snapshots tbody tr, #phases tr.primary")].map(text);
    const ofEnd = rows.filter((row) => /leakage/.test(row) && row.includes("points"));
    expect(ofEnd).toHaveLength(2);
    for (const row of ofEnd) expect(row).toContain("cannot be judged");
  },
);

it("shows the source's rate before the others': in the card, the table and the charts", async () => {
  const { document } = parseHTML(renderPage(await recorded("healthy")));
  const card = [...document.querySelectorAll(".cards .card")]
    .map(text)
    .find((one) => one.startsWith("leak"))!;
  expect(card).toMatch(/^leakage source 0\.0 % → 100\.0 %; other personas: 0\.0 % to|^leakage source/);
  const names = [...document.querySelectorAll("#phases tbody th")].map(text);
  expect(names.indexOf("leakage: source rate")).toBe(names.indexOf("leakage: leakage rate") - 1);
  const captions = [...document.querySelectorAll("section > p.sub")].map(text);
  const at = (word: string) => captions.findIndex((caption) => caption.startsWith(word));
  expect([at("Source rate") >= 0, at("Source rate") < at("Leakage rate")]).toEqual([true, true]);
});

it("does not name the phase of a run with one phase in lines and cards", async () => {
  const { document } = parseHTML(renderPage(await recorded("healthy")));
  for (const detail of document.querySelectorAll(".sentences details")) detail.remove();
  const lines = [...document.querySelectorAll(".sentences li, .facts, .cards .card")].map(text);
  for (const line of lines) expect(line).not.toMatch(/\btrain\b/);
});
