import { describe, expect, it } from "vitest";
import { ownColours, printable } from "./printable.ts";

const paint = (open: number, close: number) => (text: string) => `\x1b[${open}m${text}\x1b[${close}m`;
const ansi = { red: paint(31, 39), bold: paint(1, 22), isColorSupported: true };
const own = ownColours(ansi);

describe("printable", () => {
  it.each([
    ["a colour", "\x1b[31mred", "\\x1b[31mred"],
    ["a cleared screen", "\x1b[2J\x1bc", "\\x1b[2J\\x1bc"],
    ["a link (OSC 8)", "\x1b]8;;http://a\x07b\x1b]8;;\x1b\\", "\\x1b]8;;http://a\\x07b\\x1b]8;;\\x1b\\"],
    ["C1 controls", "\x9b2J\x80\x9f\x7f", "\\u009b2J\\u0080\\u009f\\u007f"],
    ["controls of bidirectional text", "\u202e\u2066\u2069\u202a", "\\u202e\\u2066\\u2069\\u202a"],
    ["marks of direction", "\u200e\u200f\u061c", "\\u200e\\u200f\\u061c"],
    ["line separators of Unicode", "a\u2028b\u2029c", "a\\u2028b\\u2029c"],
    ["a carriage return and backspaces", "no\ryes\b\b", "no\\x0dyes\\x08\\x08"],
  ])("shows %s escaped", (_, text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  it("keeps tabs, line ends and text of any language", () => {
    const text = "a\tb\nc\r\nd é 日本 שלום 👩‍🚀";
    expect(printable(text)).toBe(text);
  });

  it("keeps the value of a JSON document", () => {
    const value = { name: "\x7f\x9b\u202e", text: "\x1b[31m\r" };
    expect(JSON.parse(printable(JSON.stringify(value, null, 2)))).toEqual(value);
  });

  it("keeps our colours, also within each other, and escapes those in their text", () => {
    expect(printable(own.red(`a ${own.bold("b\x1b[39m")} c`))).toBe(
      "\x1b[31ma \x1b[1mb\\x1b[39m\x1b[22m c\x1b[39m",
    );
    expect(own.isColorSupported).toBe(true);
    expect(ownColours(own)).toBe(own);
  });
});
