import fc from "fast-check";
import { expect, it } from "vitest";
import { changedWords } from "./answer-view.ts";

const told = (first: string, second: string) =>
  changedWords(first, second).map(
    ({ kind, text }) => ({ same: text, removed: `-${text}`, added: `+${text}` })[kind],
  );

it.each([
  ["the same text", "the same text", ["the same text"]],
  ["the cat sat", "the dog sat", ["the ", "-cat", "+dog", " sat"]],
  // The space between two changed words is part of the phrase.
  ["take a clean pot", "take an empty pot", ["take ", "-a clean", "+an empty", " pot"]],
  ["well", "well done", ["well", "+ done"]],
  ["don’t", "don't", ["-don’t", "+don't"]],
  ["", "new", ["+new"]],
  ["", "", []],
])("marks the words that differ between %j and %j", (first, second, parts) => {
  expect(told(first, second)).toEqual(parts);
});

it("keeps both texts, character for character", () => {
  const word = fc.constantFrom("a", "b", " ", "\n", "é", "😀", "\u202e", "<b>", "don’t");
  const text = fc.array(word, { maxLength: 30 }).map((words) => words.join(""));
  fc.assert(
    fc.property(text, text, (first, second) => {
      const parts = changedWords(first, second);
      const without = (kind: string) =>
        parts
          .filter((part) => part.kind !== kind)
          .map((part) => part.text)
          .join("");
      expect([without("added"), without("removed")]).toEqual([first, second]);
    }),
  );
});

it("replaces texts that are too long to compare as a whole", () => {
  const [first, second] = ["a ".repeat(2000), "b ".repeat(2000)];
  expect(changedWords(`same ${first}end`, `same ${second}end`).map(({ kind }) => kind)).toEqual([
    "same",
    "removed",
    "added",
    "same",
  ]);
});
