import { describe, expect, it } from "vitest";
import { languages, looksLike } from "./language.ts";
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

  it("counts lines with bullets or numbers", () => {
    const text = "Do this:\n- one\n * two\n1. three\n-four\n2) five\n";
    // -four lacks the space.
    expect([4, 5].map((bullets) => hits({ bullets }, text))).toEqual([true, false]);
    expect(hits({ bullets: 1 }, "a - b\n3 + 4")).toBe(false);
  });

  it("computes the share of capitals among ten or more cased letters", () => {
    // 9 of 10 capitals; of 日本 there are none.
    expect(hits({ capitals: 0.9 }, "ABCDE FGHIj 日本 42")).toBe(true);
    expect(hits({ capitals: 0.91 }, "ABCDE FGHIj 日本 42")).toBe(false);
    expect(hits({ capitals: 0.5 }, "YES")).toBe(false);
    expect(hits({ capitals: 0.5 }, "")).toBe(false);
  });

  it("detects a language, and records the rule", () => {
    const trait = traitOf({ language: "fr" }, "t");
    expect(trait.hit("Je ne sais pas ce que vous voulez dire.")).toBe(true);
    expect(trait.fingerprint).toEqual({ language: "fr", by: "stop words or script, version 1" });
  });

  it("accepts a function with a version", () => {
    const trait = traitOf({ name: "short", version: "2", hit: (text) => text.length < 3 }, "t");
    expect([trait.hit("ab"), trait.hit("abc")]).toEqual([true, false]);
    expect(trait.fingerprint).toEqual({ name: "short", version: "2" });
  });

  it.each([
    ["", "expected a non-empty string"],
    [{}, "one of { regex }, { bullets }"],
    [{ regex: "a", bullets: 2 }, "Choose one trait"],
    [{ regex: "(" }, /t\.marker\.regex: got "\("/],
    [{ regex: "a", flags: "g" }, "a match anywhere is a hit"],
    [{ bullets: 0 }, "a positive integer"],
    [{ bullets: 2, flags: "i" }, 'the unknown option "flags"'],
    [{ capitals: 90 }, "Write 0.9 for 90 %"],
    [{ language: "xx" }, 't.marker.language: got "xx"'],
    [{ languge: "de" }, 'Did you mean "language"?'],
    [{ hit: () => true }, "Name the trait"],
    [{ name: "x", hit: 3 }, "a function of a string"],
    [null, "got null"],
  ])("rejects %j", (options, message) => {
    expect(() => traitOf(options as never, "t")).toThrow(message);
  });
});

describe("looksLike", () => {
  const texts = {
    ar: "أنا لا أعرف ماذا أقول",
    de: "Ich weiß nicht, wie das mit der Brücke ist, aber es geht auch ohne.",
    el: "Δεν ξέρω τι να πω",
    en: "I do not know what you would have done about this, but it was not for them.",
    es: "No sé por qué la casa es más grande que el jardín, pero así está.",
    fr: "Je ne sais pas pourquoi la maison est plus grande que le jardin.",
    he: "אני לא יודע מה להגיד",
    hi: "मुझे नहीं पता क्या कहना है",
    it: "Non so perché la casa è più grande del giardino, ma anche questo ci sta.",
    ja: "私は何と言えばいいか分かりません。",
    ko: "무슨 말을 해야 할지 모르겠어요",
    nl: "Ik weet niet wat het is, maar dat zou ook met een brug door de stad kunnen.",
    pt: "Não sei por que a casa é maior do que o jardim, mas isso também já foi dito.",
    ru: "Я не знаю, что сказать",
    zh: "我不知道该说什么",
  };

  it("distinguishes every known language from every other", () => {
    expect(Object.keys(texts)).toEqual([...languages].sort());
    for (const [written, text] of Object.entries(texts)) {
      expect([written, languages.filter((language) => looksLike(language, text))]).toEqual([
        written,
        [written],
      ]);
    }
  });

  it("returns false for strings that are too short, and for the empty string", () => {
    for (const text of ["", "42 + 1", "Bonjour", "die"])
      expect(languages.filter((language) => looksLike(language, text))).toEqual([]);
  });
});
