import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { looseForms, scoreResponse } from "./score.ts";

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
  it("is strict about the whole response, and loose about its first and last line and asterisks", () => {
    // Without its first line no comma is left and the rest is JSON; the keyword stands only in what is passed over.
    expect(scoreResponse(document, 'Sure, here it is:\n**{"a": 1}**')).toEqual({
      strict: [false, false, true],
      loose: [true, true, true],
    });
  });

  it("follows no instruction if the response is blank, strictly or loosely", () => {
    const nothing = { strict: [false, false, false], loose: [false, false, false] };
    expect(scoreResponse(document, " \n\u00a0")).toEqual(nothing);
    expect(scoreResponse(document, "*, *").loose).toEqual([false, false, false]);
    // An asterisk alone is no comma; what is left without it is blank and follows nothing.
    expect(scoreResponse(document, "*").strict).toEqual([true, false, false]);
  });

  it("is never stricter when loose", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "\n", "*", ",", "{", "}", " ") }), (response) => {
        const { strict, loose } = scoreResponse(document, response);
        expect(strict.every((one, at) => !one || loose[at])).toBe(true);
      }),
    );
  });
});

describe("looseForms", () => {
  it("are eight: without first line, last line or both, and these without asterisks", () => {
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

  it("are listed once if they are equal", () => {
    expect(looseForms("one line")).toEqual(["one line", ""]);
  });
});
