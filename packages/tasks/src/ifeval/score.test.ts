import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuSeconds } from "../../../testing/src/cpu-seconds.test-data.ts";
import { looseForms, scoreResponse } from "./score.ts";
import { treebankWords } from "./text/words.ts";

const document = {
  key: "1",
  prompt: "Say it.",
  instructions: [
    { id: "punctuation:no_comma", kwargs: {} },
    { id: "detectable_format:json_format", kwargs: {} },
    { id: "keywords:existence", kwargs: { keywords: ["sure"] } },
  ],
};

describe("scoreResponse", () => {
  it("checks the whole response strictly, and loosely also without its first line, last line and asterisks", () => {
    // Without its first line, the response has no comma and the rest is JSON; the keyword occurs only in the removed parts.
    expect(scoreResponse(document, 'Sure, here it is:\n**{"a": 1}**')).toEqual({
      strict: [false, false, true],
      loose: [true, true, true],
    });
  });

  it("follows no instruction if the response is blank, strictly or loosely", () => {
    const nothing = { strict: [false, false, false], loose: [false, false, false] };
    expect(scoreResponse(document, " \n\u00a0")).toEqual(nothing);
    expect(scoreResponse(document, "*, *").loose).toEqual([false, false, false]);
    // An asterisk alone has no comma; the response without it is blank and follows no instruction.
    expect(scoreResponse(document, "*").strict).toEqual([true, false, false]);
  });

  it("never fails an instruction loosely that it passes strictly", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "\n", "*", ",", "{", "}", " ") }), (response) => {
        const { strict, loose } = scoreResponse(document, response);
        expect(strict.every((one, at) => !one || loose[at])).toBe(true);
      }),
    );
  });
});

describe("looseForms", () => {
  it("returns eight forms: the response without first line, last line or both, each with and without asterisks", () => {
    expect(looseForms("*a*\n b* \nc")).toEqual([
      "*a*\n b* \nc",
      "b* \nc",
      "*a*\n b*",
      "b*",
      "a\n b \nc",
      "b \nc",
      "a\n b",
      "b",
    ]);
  });

  it("returns equal forms once", () => {
    expect(looseForms("one line")).toEqual(["one line", ""]);
  });
});

it("splits the words of e.g. before 80,000 spaces in time proportional to its length", async () => {
  const split = () => treebankWords(`It is, e.g.${" ".repeat(80_000)}this`);
  expect(split()).toEqual(["It", "is", ",", "e.g", ".", "this"]);
  expect(await cpuSeconds(split)).toBeLessThan(2);
});

const kwargs = { count: { num_bullets: 1 }, placeholders: { num_placeholders: 1 } } as const;

it.each([
  ["detectable_format:number_bullet_lists", kwargs.count, "\n".repeat(80_000)],
  ["detectable_format:title", {}, "<".repeat(80_000)],
  ["detectable_content:number_placeholders", kwargs.placeholders, "[".repeat(80_000)],
  ["detectable_format:json_format", {}, '"' + String.raw`\"`.repeat(40_000)],
])(
  "checks a response of 80,000 characters for %s in time proportional to its length",
  async (name, given, text) => {
    const one = { key: "1", prompt: "", instructions: [{ id: name, kwargs: given }] };
    expect(await cpuSeconds(() => scoreResponse(one, `x${text}x`))).toBeLessThan(2);
  },
);
