import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findEmoji } from "./shipped.ts";

const single = ["😀", "🎉", "❤️", "❤", "☀️", "✨", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "1️⃣", "#⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "©️", "🧑🏿‍🚀", "⭐"];

describe("findEmoji", () => {
  it.each(single)("finds %s", (emoji) => {
    expect(findEmoji(`so ${emoji} so`)).toEqual([emoji]);
  });

  it.each([
    "0123456789 #1 *bold* (c)",
    "Copyright © 2026, Acme® and Bolt™",
    "Ünïcödé, 日本語, العربية, русский",
    ":-) ;) <3 → ← ∑ √ ½ • – — … “quotes”",
    "❤\uFE0E and ☀\uFE0E as text",
    "",
  ])("finds no emoji in %s", (text) => {
    expect(findEmoji(text)).toEqual([]);
  });

  it("returns adjacent flags separately", () => {
    expect(findEmoji("🇩🇪🇫🇷")).toEqual(["🇩🇪", "🇫🇷"]);
  });

  it("finds exactly the emoji inserted into plain text", () => {
    const plain = fc.string({ unit: fc.constantFrom(..."abc 019#*.,!?üß日\n©") });
    // A letter on each side keeps an emoji from combining with its neighbours: two regional letters form a flag, and
    // U+FE0F changes the character before it.
    fc.assert(
      fc.property(fc.array(fc.tuple(plain, fc.constantFrom(...single))), plain, (parts, end) => {
        const text = parts.map(([before, emoji]) => `${before}x${emoji}x`).join("") + end;
        expect(findEmoji(text)).toEqual(parts.map(([, emoji]) => emoji));
      }),
    );
  });

  it("agrees with Unicode's list of recommended sequences", () => {
    // RGI_Emoji, which needs the `v` flag, is Unicode's list of emoji for keyboards.
    const recommended = new RegExp(String.raw`^\p{RGI_Emoji}$`, "v");
    for (const emoji of single.filter((one) => recommended.test(one)))
      expect(findEmoji(emoji)).toEqual([emoji]);
    expect(single.filter((one) => recommended.test(one)).length).toBeGreaterThan(10);
  });
});
