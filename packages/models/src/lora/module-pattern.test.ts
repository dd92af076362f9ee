import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maxPatternSteps, modulePattern } from "./module-pattern.ts";

const errorFor = (got: string) => new Error(`invalid: ${got}`);
/** A matcher that backtracks would take hours. */
const longTimeout = { timeout: 60_000 };
const compiled = (pattern: string) => modulePattern(pattern, { steps: maxPatternSteps, errorFor });

/** Patterns with the same meaning in Python and JavaScript, so that JavaScript's engine is the oracle. */
const character = fc.constantFrom(
  "a",
  "b",
  "0",
  "\\.",
  ".",
  "\\d",
  "\\w",
  "[ab]",
  "[^a]",
  "[a-c.]",
  "[\\d_]",
);
const place = fc.constantFrom("^", "$", "\\b", "\\B");
const quantifier = fc.constantFrom(
  "*",
  "+",
  "?",
  "{2}",
  "{1,2}",
  "{1,}",
  "{0,2}",
  "*?",
  "+?",
  "??",
  "{1,2}?",
);
const { pattern } = fc.letrec<{ pattern: string; term: string }>((tie) => ({
  term: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    character,
    place,
    fc.tuple(character, quantifier).map((parts) => parts.join("")),
    fc
      .tuple(fc.constantFrom("", "?:", "?=", "?!"), tie("pattern"), fc.option(quantifier, { nil: "" }))
      .map(([kind, inner, repeat]) => `(${kind}${inner})${/[=!]/.test(kind) ? "" : repeat}`),
  ),
  pattern: fc
    .array(
      fc.array(tie("term"), { maxLength: 4 }).map((terms) => terms.join("")),
      { minLength: 1, maxLength: 3 },
    )
    .map((choices) => choices.join("|")),
}));
const name = fc
  .array(fc.constantFrom("a", "b", "c", "0", ".", "_"), { maxLength: 8 })
  .map((parts) => parts.join(""));

describe("modulePattern", () => {
  it("agrees with JavaScript's engine on patterns with the same meaning in Python", () => {
    fc.assert(
      fc.property(pattern, fc.array(name, { minLength: 1, maxLength: 5 }), (text, names) => {
        const matches = compiled(text);
        for (const each of names) expect(matches(each), each).toBe(new RegExp(`^(?:${text})$`).test(each));
      }),
      { numRuns: 3000 },
    );
  });

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
    ["(", 'incomplete|without "'],
    ["a)", 'without "'],
    ["*a", "nothing to repeat"],
    ["a**", "two repetitions in a row"],
    ["a{2}{3}", "two repetitions in a row"],
    ["a*+", "possessive"],
    ["a{3,2}", "the repetition"],
    ["^*", "repeated assertion"],
    ["(?<=a)b", "\\?<="],
    ["(?<!a)b", "\\?<!"],
    ["(?i)a", "\\?i"],
    ["(?>a)", "\\?>"],
    ["(?P=a)", "\\?P="],
    ["(a)\\1", "1"],
    ["\\p{L}", "p"],
    ["[\\x41]", "x"],
    ["[b-a]", "range"],
    ["[a", "incomplete"],
    ["a\\", "incomplete"],
    ["(".repeat(200) + ")".repeat(200), "deeper"],
    ["a".repeat(4001), "4001 characters"],
  ])("throws for %.30s", (text, why) => {
    expect(() => compiled(text)).toThrow(new RegExp(`invalid: .*(${why})`));
  });

  it.each([
    ["(a+)+$", "a".repeat(60) + "b"],
    ["(a|a)*b", "a".repeat(200)],
    ["((((a*)*)*)*)*b", "a".repeat(100)],
    ["(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x", "a".repeat(200)],
    ["(a?){200}a{200}", "a".repeat(199)],
    ["(?:(?:a{0,900}){0,900}){0,900}b", "a".repeat(60)],
  ])("matches %s, on which other engines backtrack forever, at once", longTimeout, (text, module) => {
    expect(compiled(text)(module)).toBe(false);
  });

  it.each([
    ["(a?){2000000000}b", "aaa"],
    [`${"(.*)".repeat(900)}x`, "a".repeat(300)],
  ])("throws for %.20s, which takes too many steps", longTimeout, (text, module) => {
    expect(() => compiled(text)(module)).toThrow("invalid: a pattern that takes too long to match");
  });
});
