import { describe, expect, it } from "vitest";
import { fakeTokenizer } from "../../testing/index.ts";
import { opensThinking, stripThinking } from "./completions.ts";

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

  it.each([
    ["cut off in the block that the template opened", "Hm, what if", null],
    ["closed", "Hm.</think>Yes.", "Yes."],
    ["opened once more by the model", "<think>Hm.</think>Yes.", "Yes."],
    ["a second left open", "Hm.</think>Yes, <think>or", null],
  ])("opened by the template, %s", (_, text, answer) => {
    expect(stripThinking(text, { isOpened: true })).toBe(answer);
  });
});

describe("opensThinking", () => {
  const model = (text: string | null) => ({
    tokenizer: { ...fakeTokenizer(), render: () => ({ text, ids: [], assistantMask: null }) },
  });
  it.each([
    ["<|assistant|><think>\n", true],
    ["<|assistant|><think>\n\n</think>\n\n", false],
    ["<think>a</think><|assistant|>", false],
    [null, false],
  ])("%j: %s", (text, opens) => {
    expect(opensThinking(model(text), { text: "x" })).toBe(opens);
  });

  it("returns false for a model without a tokenizer", () => {
    expect(opensThinking({}, { text: "x" })).toBe(false);
  });
});
