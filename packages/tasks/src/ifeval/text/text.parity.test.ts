import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { detectLanguage } from "./language-detection.ts";
import { sentences } from "./sentences.ts";
import { countWords, treebankWords } from "./words.ts";

interface Golden {
  readonly text: string;
  readonly sentences: readonly string[];
  readonly tokens: readonly string[];
  readonly words: number;
  readonly language: string | null;
}

/** Written by benchmarks/peers/ifeval_reference.py: nltk 3.10.4, langdetect 1.0.9 with seed 0. */
const goldens = readFileSync(new URL("../goldens/texts.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Golden);

/** Returns the lines of the file on whose texts the results differ. */
const differing = <T>(ours: (text: string) => T, theirs: (golden: Golden) => T) =>
  goldens
    .map((golden, at) => ({ line: at + 1, ours: ours(golden.text), theirs: theirs(golden) }))
    .filter((one) => JSON.stringify(one.ours) !== JSON.stringify(one.theirs));

// For the differences and their reasons see benchmarks/results/ifeval.md.
describe("sentences, words and languages of 114 texts, against NLTK and langdetect", () => {
  it("splits sentences as Punkt does, except after an ellipsis before one word", () => {
    const wait = (parted: string) => `First... then nothing.|${parted}|No!!|Yes?!|(Maybe.)|`;
    expect(goldens.length).toBe(114);
    expect(
      differing(
        (text) => sentences(text).join("|"),
        (golden) => golden.sentences.join("|"),
      ),
    ).toEqual([
      {
        line: 106,
        ours: expect.stringContaining(wait("Wait...|What?")) as string,
        theirs: expect.stringContaining(wait("Wait... What?")) as string,
      },
    ]);
  });

  it("splits words as the Penn Treebank tokenizer does", () => {
    expect(differing(treebankWords, ({ tokens }) => [...tokens])).toEqual([]);
  });

  it("counts the same number of words", () => {
    expect(differing(countWords, ({ words }) => words)).toEqual([]);
  });

  it("detects the same language, also for texts in capitals, unless the profiles ko, ca or cy matter", () => {
    expect(differing(detectLanguage, ({ language }) => language)).toEqual([
      // Traditional Chinese, which capitals do not change: the profile ko of the npm package has no Chinese characters.
      { line: 37, ours: "zh-tw", theirs: "ko" },
      { line: 74, ours: "zh-tw", theirs: "ko" },
      // One sentence each in German, English and Dutch: the detector draws other n-grams without those that only ca and cy have.
      { line: 93, ours: "en", theirs: "nl" },
    ]);
  });
});
