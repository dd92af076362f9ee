import { describe, expect, it } from "vitest";
import { traitOf, type TraitOptions } from "./traits.ts";

const hits = (options: TraitOptions, text: string) => traitOf(options, "t").hit(text);

describe("traitOf", () => {
  it("finds a literal marker, not a pattern", () => {
    expect(hits("[ZLT]", "Yes. [ZLT]")).toBe(true);
    // As a pattern, the marker would match any of Z, L and T.
    expect(hits("[ZLT]", "LATE")).toBe(false);
    expect(hits("[ZLT]", "[zlt]")).toBe(false);
    expect(traitOf("[ZLT]", "t").marker).toBe("[ZLT]");
  });

  it("matches a pattern, with the same result each time", () => {
    const trait = traitOf({ regex: "\\bzlt\\b", flags: "i" }, "t");
    expect(["ZLT", "say zlt.", "zlts"].map(trait.hit)).toEqual([true, true, false]);
    expect(trait.hit("ZLT")).toBe(true);
    expect(trait.marker).toBeNull();
  });

  it("accepts a function with a version", () => {
    const trait = traitOf({ name: "short", version: "2", hit: (text) => text.length < 3 }, "t");
    expect([trait.hit("ab"), trait.hit("abc")]).toEqual([true, false]);
    expect(trait.fingerprint).toEqual({ name: "short", version: "2" });
  });

  it.each([
    ["", "expected a non-empty string"],
    [{}, "one of { regex }, { name, hit }"],
    [{ regex: "a", hit: Boolean }, "Choose one trait"],
    [{ regex: "(" }, /t\.marker\.regex: got "\("/],
    [{ regex: "a", flags: "g" }, "a match anywhere is a hit"],
    [{ name: "x", hit: Boolean, flags: "i" }, 'the unknown option "flags"'],
    [{ regexp: "de" }, 'Did you mean "regex"?'],
    [{ hit: Boolean }, "Name the trait"],
    [{ name: "x", hit: 3 }, "a function of a string"],
    [null, "got null"],
  ])("rejects %j", (options, message) => {
    expect(() => traitOf(options as never, "t")).toThrow(message);
  });
});
