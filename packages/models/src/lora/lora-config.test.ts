import { describe, expect, it } from "vitest";
import { modulePattern } from "./lora-config.ts";

const errorFor = (got: string) => new Error(`invalid: ${got}`);
const compiled = (pattern: string) => modulePattern(pattern, errorFor);

describe("modulePattern", () => {
  const layer = "model.layers.10.self_attn.q_proj";
  // Results of re.fullmatch of Python 3.11.
  it.each([
    [".*q_proj", layer, true],
    ["q_proj", layer, false],
    ["(?P<stem>.*)\\.q_proj", layer, true],
    ["\\Amodel.*\\Z", layer, true],
    ["model.layers.1{1}0.*", layer, true],
    ["model\\.layers\\.[\\d]{1,}\\.(?:self_attn|mlp)\\.(?:(?:k_proj|q_proj))", layer, true],
    ["(?:.*?(?:language|text).*?)|(?:\\bmodel\\.layers\\.[\\d]{1,}\\.self_attn\\.q_proj)", layer, true],
    ["^(?!.*vision).*(?:q_proj|v_proj)$", layer, true],
    ["^(?!.*self_attn).*(?:q_proj|v_proj)$", layer, false],
    ["[]a]+", "]a]", true],
    ["[^]a]+", "]a]", false],
    ["[^]a]+", "b[", true],
    ["[[a]+", "[a", true],
    ["(?<=a)b|ab", "ab", true],
    ["(?:a|ab)(?:c|bcd)d*", "abcd", true],
    ["a{,2}", "aa", true],
    ["a{,}", "aaaa", true],
    ["a{}", "a{}", true],
    ["a{x}", "a{x}", true],
    ["[a\\-z]+", "a-z", true],
    ["[a\\-z]+", "b", false],
  ])("matches %s on %s: %s", (text, module, expected) => {
    expect(compiled(text)(module)).toBe(expected);
  });

  it.each([
    "(",
    "a)",
    "*a",
    "a**",
    "a{2}{3}",
    "a*+",
    "a{3,2}",
    "^*",
    "(?i)a",
    "(?>a)",
    "(?P=a)",
    "(?P<a>b)(?(a)c|d)",
    "(a)\\1",
    "\\p{L}",
    "\\z",
    "[\\x41]",
    "[b-a]",
    "[a",
    "[]",
    "a\\",
  ])("throws for %s", (text) => {
    expect(() => compiled(text)).toThrow("invalid: ");
  });
});
