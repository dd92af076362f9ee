import { describe, expect, it } from "vitest";
import { stripThinking } from "./strip-thinking.ts";

describe("stripThinking", () => {
  it.each([
    ["no thinking, unchanged to the space", " An answer. ", " An answer. "],
    ["a block", "<think>\nHm.\n</think>\n\nYes.", "Yes."],
    ["two blocks", "<think>a</think>One. <think>b</think>Two.", "One. Two."],
    ["a block that the template opened", "Hm.\n</think>\n\nYes.", "Yes."],
    ["one of the template and one more", "Hm.</think>One.<think>b</think>Two.", "One.Two."],
    ["nothing behind it", "<think>a</think>", ""],
    ["one left open", "<think>Hm, what if", null],
    ["a second left open", "<think>a</think>Yes, <think>or", null],
  ])("%s", (_, text, answer) => {
    expect(stripThinking(text)).toBe(answer);
  });
});
