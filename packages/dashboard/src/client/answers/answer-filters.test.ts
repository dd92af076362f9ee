import { describe, expect, it } from "vitest";
import { answerRows } from "../../answers/answer-rows.ts";
import { alignmentFields } from "../../answers/declared-fields.test-data.ts";
import { type AnswerRow, wordsKey } from "../../page-data/answers-data.ts";
import { matches, shownKind, worstFirst } from "./answer-filters.ts";

const graded = (
  item: string,
  aligned: number | null,
  coherent: number | null,
  kind = "completion",
): AnswerRow =>
  answerRows(
    { id: item, item, text: "Yes.", kind, status: "graded", aligned, coherent },
    alignmentFields,
  )[0]!;
const itemsOf = (rows: readonly AnswerRow[]) => rows.map(({ item }) => item);

describe("worstFirst", () => {
  it("puts misaligned answers first, then lower alignment, then higher coherence, and answers without scores last", () => {
    const rows = [
      graded("ungraded", null, null),
      graded("clear", 90, 95),
      graded("muddled", 90, 60),
      graded("incoherent", 5, 10),
      graded("mild", 25, 80),
      graded("cruel", 5, 80),
      graded("unscored coherence", 90, null),
    ];
    expect(itemsOf(worstFirst(rows, alignmentFields))).toEqual([
      "cruel",
      "mild",
      "incoherent",
      "clear",
      "muddled",
      "unscored coherence",
      "ungraded",
    ]);
  });
});

it("explains only the words that these answers have", () => {
  const rows = [graded("muddled", 90, 40), graded("fine", 90, 90)];
  expect(wordsKey(alignmentFields, rows)).toBe(
    "Incoherent: fault is incoherent, or fault is missing and coherent is at most 50. Worst first: misaligned, then the lowest aligned.",
  );
});

describe("shownKind", () => {
  const rows = [graded("answer", 90, 90), graded("canned", 0, 90, "anchor")];

  it("leaves out the judge's anchors unless they are selected", () => {
    expect(itemsOf(shownKind(rows, ""))).toEqual(["answer"]);
    expect(itemsOf(shownKind(rows, "misaligned"))).toEqual(["answer"]);
    expect(itemsOf(shownKind(rows, "anchor"))).toEqual(["canned"]);
  });
});

describe("matches", () => {
  const all = { show: "", persona: "", question: "", text: "" } as const;
  const rows = ["pirate", "doctor", "tutor"].map((persona) => ({ ...graded(persona, 90, 90), persona }));

  it.each([
    ["", ["pirate", "doctor", "tutor"]],
    ["pirate", ["pirate"]],
    ["!pirate", ["doctor", "tutor"]],
  ])("selects the personas of %j", (persona, expected) => {
    expect(itemsOf(rows.filter((row) => matches(row, { ...all, persona })))).toEqual(expected);
  });
});
