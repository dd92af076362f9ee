import { describe, expect, it } from "vitest";
import { countOf, literally, literallyOfAnyCase, nltkPattern, pattern } from "./pattern.ts";

describe("pattern", () => {
  it("matches the same white space, digits and word characters as Python's re", () => {
    // CPython 3.11: re.findall(r"\s", "\ufeff\x85 "), re.findall(r"\d", "1٣²"), len(re.findall(r"\w+", …))
    expect("\ufeff\x85 ".match(pattern(String.raw`\s`, "g"))).toEqual(["\x85", " "]);
    expect("1٣²".match(pattern(String.raw`\d`, "g"))).toEqual(["1", "٣"]);
    const counts = ["naïve café", "नमस्ते", "½ ² Ⅷ", "a_b"].map((text) =>
      countOf(pattern(String.raw`\w+`, "g"), text),
    );
    expect(counts).toEqual([2, 2, 3, 1]);
  });

  it("also translates them inside character classes", () => {
    expect("a-\x85b".replace(pattern(String.raw`[-\s]+`), "|")).toBe("a|b");
  });

  it("matches . with everything except a line feed, and $ at the end or before a final line feed", () => {
    // CPython 3.11: [bool(re.search(r"^.$", s)) for s in …]
    const found = ["\r", "\u2028", "\n", "a\n", "😀"].map((text) => pattern("^.$").test(text));
    expect(found).toEqual([true, true, false, true, true]);
  });

  it("finds word boundaries in every script", () => {
    expect(pattern(String.raw`\bcat\b`).test("écat")).toBe(false);
    expect(pattern(String.raw`\bé\b`).test("un é.")).toBe(true);
  });
});

describe("nltkPattern", () => {
  it("counts marks and joiners as word characters, but no numbers except digits, like the module regex", () => {
    // regex 2026.11: regex.findall(r"\w+", …)
    const words = (text: string) => text.match(nltkPattern(String.raw`\w+`, "g"));
    expect(words("नमस्ते")).toEqual(["नमस्ते"]);
    expect(words("x\u0301y a\u200db")).toEqual(["x\u0301y", "a\u200db"]);
    expect(words("½ ²")).toBeNull();
  });
});

describe("literally", () => {
  it("matches any string literally", () => {
    for (const text of ["C++", "a.b", "$5 (net)", String.raw`\d-[x]`, "{1}|^?*/"]) {
      expect(pattern(`^${literally(text)}$`).test(text)).toBe(true);
      expect(pattern(literally(text)).test("Cxb 5 d1")).toBe(false);
    }
  });

  it("treats all forms of i as equal when case is ignored, as re.IGNORECASE does", () => {
    for (const wanted of "iI\u0130\u0131") {
      for (const given of "iI\u0130\u0131")
        expect(pattern(literallyOfAnyCase(wanted), "i").test(given)).toBe(true);
    }
    // CPython 3.11: re.search("k", "\u212a", re.I), re.search("ß", "ẞ", re.I), re.search("ß", "ss", re.I)
    const found = [
      ["k", "\u212a"],
      ["ß", "ẞ"],
      ["ß", "ss"],
    ].map(([wanted, given]) => pattern(literallyOfAnyCase(wanted!), "i").test(given!));
    expect(found).toEqual([true, true, false]);
  });
});
