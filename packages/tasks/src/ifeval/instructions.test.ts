import { expect, it } from "vitest";
import { checkOf, type IFEvalInstruction } from "./ifeval-document.ts";

const check = (id: string, kwargs: IFEvalInstruction["kwargs"]) => checkOf({ id, kwargs }, "test");

it("matches keywords literally, not as patterns", () => {
  expect(check("keywords:existence", { keywords: ["C++"] })("I write C++.")).toBe(true);
  expect(check("keywords:existence", { keywords: ["node.js"] })("nodexjs")).toBe(false);
  expect(check("keywords:frequency", { keyword: "?", frequency: 2, relation: "at least" })("So? Why?")).toBe(
    true,
  );
  expect(check("keywords:forbidden_words", { forbidden_words: ["a.b"] })("a-b axb")).toBe(true);
});

it("accepts any character as a letter, as in two documents of IFEval", () => {
  const sixMarks = check("keywords:letter_frequency", {
    letter: "!",
    let_frequency: 6,
    let_relation: "at least",
  });
  expect(sixMarks("Yes!!! Go!!!")).toBe(true);
  expect(sixMarks("Yes!!! Go!!")).toBe(false);
});
