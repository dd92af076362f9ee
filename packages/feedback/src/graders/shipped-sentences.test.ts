import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuSeconds } from "../../../testing/src/cpu-seconds.test-data.ts";
import { countSentences, countWords, isCutOff } from "./shipped.ts";

describe("countSentences", () => {
  it.each([
    ["", 0],
    ["   \n ", 0],
    ["...", 0],
    ["Yes", 1],
    ["Yes.", 1],
    ["Yes. No! Why? So.", 4],
    ["It costs 3.50 euros. That is 0.5 more.", 2],
    // An abbreviation never ends a sentence, not even at the end of one.
    ["Dr. Smith met Mr. Jones at 5 p.m. They talked.", 1],
    ["We use, e.g. Python, i.e. a language. It works.", 2],
    ["J. R. R. Tolkien wrote it. He was from England.", 2],
    ["Version 2.0.1 is out. Get it at example.com today.", 2],
    ["He said: “Stop.” Then he left.", 2],
    ["1. Take a pan.\n2. Heat it.\n3. Eat.", 3],
    ["- milk\n- bread\n- eggs", 3],
    ["This line goes on\nin the next. And ends.", 2],
    ["A title\n\nA text of one sentence.", 2],
    // A lowercase letter after dots continues the sentence.
    ["Wait... what? No.", 2],
    ["No. So did I. Then it rained.", 3],
    ["Ask the dept. of transport.", 1],
    ["It ends in etc.", 1],
    ["Really?! Yes.", 2],
  ])("counts %j as %i", (text, count) => {
    expect(countSentences(text)).toBe(count);
  });

  const clause = fc.constantFrom(
    "the cat sleeps",
    "it costs 3.5 euros",
    "we met Dr. Smith there",
    "use a list, e.g. of names",
    "a.b.c is a path",
  );
  const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
  const sentence = fc.tuple(clause, fc.constantFrom(".", "!", "?")).map(([text, end]) => capital(text) + end);

  it("counts joined sentences that contain decimals and abbreviations", () => {
    fc.assert(
      fc.property(
        fc.array(sentence, { minLength: 1, maxLength: 12 }),
        fc.constantFrom(" ", "\n", "\n\n"),
        (list, gap) => {
          expect(countSentences(list.join(gap))).toBe(list.length);
        },
      ),
    );
  });

  it("returns 1 more after a sentence is appended", () => {
    fc.assert(
      fc.property(fc.string(), sentence, (text, more) => {
        expect(countSentences(`${text}\n\n${more}`)).toBe(countSentences(text) + 1);
      }),
    );
  });
});

it("countWords counts words and numbers, but not punctuation or emoji", () => {
  expect(countWords("It's 3.5 km — or so; isn't it?")).toBe(7);
  expect(countWords("… !? 😀")).toBe(0);
});

describe("isCutOff", () => {
  it.each([
    "Paris",
    "Paris.",
    "the blue whale",
    "It costs 3.50 euros.",
    "He said: “Stop.”",
    "(It is Paris.)",
    "*Paris.*",
    "1. Milk\n2. Bread and butter",
    "Well done! 🎉",
    "巴黎。",
    "```js\nlet x = 1;\n```",
    "Wait…",
    "Yes, you can",
    "Yes, it is",
    "I gave the book to her",
    "Sure, here you go :)",
    "Sorry, no :-(",
    "Use pnpm. See https://pnpm.io",
    "The blue whale is the largest animal that has ever lived on Earth",
    "Nein, das ist nicht so",
    "The character is `{`",
    "Press the key: `,`",
    "let x = 1;",
    // Text alone does not show that these are incomplete.
    "The capital of France is",
    "Paris is the capital of",
    "First, take a pan. Then heat it",
    "1. Milk\n2. Bread and",
    "The river flows through the old town and past the castle walls",
  ])("returns false for %j", (text) => expect(isCutOff(text)).toBe(false));

  it.each([
    "Take a pan,",
    "先拿一个锅，",
    "It is Paris, the city —",
    "Here is a list:",
    "It is Paris (the",
    "It is (as",
    "```js\nlet x = 1;",
  ])("returns true for %j", (text) => expect(isCutOff(text)).toBe(true));
});

describe("a text of 80,000 characters takes time in proportion to its length", () => {
  it.each([
    ["countWords of words", countWords, "word ".repeat(16_000)],
    ["countWords of lines", countWords, "a\n".repeat(40_000)],
    ["countSentences of spaces", countSentences, `x${" ".repeat(80_000)}x`],
    ["countSentences of one word", countSentences, `${"a".repeat(80_000)}! B`],
    ["isCutOff of empty lines", isCutOff, `x${"\n".repeat(80_000)}x`],
    ["isCutOff of brackets", isCutOff, `${"[".repeat(80_000)})`],
  ])("%s", async (_, count: (text: string) => unknown, text) =>
    expect(await cpuSeconds(() => count(text))).toBeLessThan(2),
  );
});

describe("a long text", () => {
  const prose = "The old man, who was 3.5 m tall, met Dr. Smith. She said yes! ";
  it("has as many words and sentences as its parts, in one line and in several", () => {
    const [words, sentences] = [countWords(prose), countSentences(prose)];
    expect([words, sentences]).toEqual([14, 2]);
    for (const text of [prose.repeat(200), prose.replaceAll(" ", "\n").repeat(200)])
      expect(countWords(text)).toBe(200 * words);
    expect(countSentences(prose.repeat(200))).toBe(200 * sentences);
  });

  it("has one sentence and one word if nothing ends them", () => {
    expect(countWords("a".repeat(5_000))).toBe(1);
    expect(countSentences(`${"many words and ".repeat(400)}no end.`)).toBe(1);
  });
});
