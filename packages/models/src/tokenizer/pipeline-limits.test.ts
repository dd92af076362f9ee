import { withinTime } from "@periodic-eval/core/platform";
import { describe, expect, it } from "vitest";
import { growsTooMuch, holdsEndlessPattern, holdsSlowPattern, isSlowModel } from "./pipeline-limits.ts";

const replace = (pattern: object, content: string) => ({ type: "Replace", pattern, content });
const sequence = (count: number, part: object) => ({
  type: "Sequence",
  normalizers: Array(count).fill(part),
});

describe("holdsSlowPattern", () => {
  it.each([
    "(a+)+$",
    "(a|aa)+$",
    "(\\w+\\s?)*",
    "^(([a-z])+.)+[A-Z]",
    "(a*)*\\1b",
    "((a|b)c){2,}",
    "(?:x{1,9}y?){1,}",
    "a*a*a*b",
    "x{0,9}x{0,9}x+",
    "(a+){30}b",
    "(?:a?a)+b",
    "(?:\\r?\\n)+(?!\\r?\\n)| {2,}",
    `${"a?".repeat(30)}b`,
    `${"(?:a|a)".repeat(30)}b`,
    `${"(?:|)".repeat(40)}x`,
    "a*a*(?:b|)a*a*(?:b|)a*b",
    "(a+){0000000000000000000000002,}b",
    "a*a*b|".repeat(300),
    "[".repeat(200_000),
  ])("finds %s", (Regex) => {
    expect(holdsSlowPattern({ pretokenizers: [{ type: "Split", pattern: { Regex } }] })).toBe(true);
  });

  // GPT-2, Llama 3 and Qwen, GPT-4o, DeepSeek, Granite.
  it.each([
    String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
    String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
    String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}`,
    String.raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+`,
    String.raw`\p{N}{3}(?:ab){2}`,
  ])("accepts %.30s", (Regex) => {
    expect(holdsSlowPattern({ pattern: { Regex } })).toBe(false);
  });
});

describe("holdsEndlessPattern", () => {
  it.each([
    `${"(?:|)".repeat(40)}x`,
    `${"(?:a*|b*)".repeat(40)}x`,
    `(?:${"(?:^|$)".repeat(8)}){3}x`,
    `(?:${"(?:a?|a?)".repeat(40)})+|b`,
    "[".repeat(200_000),
  ])("finds %.30s", (Regex) => {
    expect(holdsEndlessPattern({ pretokenizers: [{ pattern: { Regex } }] })).toBe(true);
  });

  it("accepts exponential patterns, which a time limit ends, and alternatives of one group", () => {
    for (const Regex of ["(a+)+$", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|\\p{N}{1,3}", "a?".repeat(100)])
      expect(holdsEndlessPattern({ pattern: { Regex } })).toBe(false);
  });
});

describe("growsTooMuch", () => {
  it.each([
    ["many doublings", sequence(30, replace({ String: "a" }, "aa"))],
    ["insertions before each character", sequence(3, replace({ Regex: "" }, "a".repeat(16)))],
    ["one long replacement", replace({ String: "a" }, "b".repeat(2000))],
  ])("finds %s", (_, part) => {
    expect(growsTooMuch(part)).toBe(true);
  });

  it("accepts what tokenizers replace", () => {
    expect(growsTooMuch(sequence(30, replace({ String: " " }, "▁")))).toBe(false);
    expect(growsTooMuch(sequence(2, replace({ Regex: " {2,}" }, " ")))).toBe(false);
    expect(growsTooMuch({ type: "NFC" })).toBe(false);
    expect(growsTooMuch(null)).toBe(false);
  });
});

describe("withinTime", () => {
  it("returns the result, and throws what the work throws", () => {
    expect(withinTime(1000, () => 7)).toBe(7);
    const fault = new Error("own");
    expect(() =>
      withinTime(1000, () => {
        throw fault;
      }),
    ).toThrow(fault);
  });

  it("ends a regular expression that takes exponential time", () => {
    expect(() => withinTime(50, () => /(a+)+$/u.test(`${"a".repeat(50)}!`))).toThrow("timed out");
  });
});

describe("isSlowModel", () => {
  it("finds WordPiece models without a limit of a word's length, or with a long prefix", () => {
    expect(isSlowModel({ type: "WordPiece", max_input_chars_per_word: 1e9 })).toBe(true);
    expect(isSlowModel({ type: "WordPiece", max_input_chars_per_word: "all" })).toBe(true);
    expect(isSlowModel({ type: "WordPiece", continuing_subword_prefix: "#".repeat(1000) })).toBe(true);
  });

  it("accepts BERT's and the other kinds", () => {
    expect(isSlowModel({ type: "WordPiece", max_input_chars_per_word: 100 })).toBe(false);
    expect(isSlowModel({ type: "WordPiece" })).toBe(false);
    expect(isSlowModel({ type: "BPE", max_input_chars_per_word: 1e9 })).toBe(false);
  });
});
