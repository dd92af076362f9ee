import { describe, expect, it } from "vitest";
import { isLower, isUpper, strip, words } from "./pattern.ts";

describe("Python's methods of str", () => {
  it("strips the same characters as strip", () => {
    // CPython 3.11: "\x1c\x85 a\ufeff\u3000".strip(), '""x"'.strip('"')
    expect(strip("\x1c\x85 a\ufeff\u3000")).toBe("a\ufeff");
    expect(strip('""x"', '"')).toBe("x");
    expect(strip("\n ")).toBe("");
  });

  it("splits at the same characters as split", () => {
    // CPython 3.11: " a\x1cb\x85c\ufeffd ".split()
    expect(words(" a\x1cb\x85c\ufeffd ")).toEqual(["a", "b", "c\ufeffd"]);
  });

  it("recognizes case like isupper and islower", () => {
    // CPython 3.11: [s.isupper() for s in …], [s.islower() for s in …]
    expect(["A1", "Ⅷ", "Ⓐ", "ǅ", "1", "Aª", ""].map(isUpper)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
    expect(["a1", "ⅷ", "ª", "ǆ", "1", "aǅ", ""].map(isLower)).toEqual([
      true,
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});
