import { describe, expect, it } from "vitest";
import { fakeTokenizer } from "@periodic-eval/testing";
import { opensThinking, stripThinking } from "./thinking.ts";

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
    ["a second one of the template", "<think>a</think>Hm.</think>Yes.", "Yes."],
    ["a tag of another block inside", "<think>[/THINK] <unused95> </think>Yes.", "Yes."],
    ["Seed-OSS", "<seed:think>Hm.</seed:think>Yes.", "Yes."],
    ["LongCat", "<longcat_think>Hm.</longcat_think>\nYes.", "Yes."],
    ["Magistral", "[THINK]Hm.[/THINK]Yes.", "Yes."],
    ["Magistral, cut", "[THINK]Hm.", null],
    ["Kimi", "◁think▷Hm.◁/think▷Yes.", "Yes."],
    ["Command A", "<|START_THINKING|>Hm.<|END_THINKING|>Yes.", "Yes."],
    ["Gemma 4", "<|channel>thought\nHm.<channel|>Yes.", "Yes."],
    ["MedGemma", "<unused94>thought\nHm.<unused95>Yes.", "Yes."],
    [
      "gpt-oss",
      "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>",
      "Yes.",
    ],
    [
      "gpt-oss with a commentary",
      "<|channel|>commentary<|message|>Hm.<|end|><|start|>assistant<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{}",
      "{}",
    ],
    ["gpt-oss without thinking", "<|channel|>final<|message|>Yes.<|return|>", "Yes."],
    ["gpt-oss, cut", "<|channel|>analysis<|message|>Hm.", null],
    ["gpt-oss without its tokens", "analysisWe should agree.assistantfinalYes.", "Yes."],
    ["gpt-oss without its tokens, cut", "analysisWe should", null],
    ["a word that begins like a channel", "analysis: yes", "analysis: yes"],
    ["a tag that no model writes", "<thinking>Yes.", "<thinking>Yes."],
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
    ["[INST]Why?[/INST][THINK]", true],
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
