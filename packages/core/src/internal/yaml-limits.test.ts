import { expect, it } from "vitest";
import { Lexer } from "yaml";
import { excessOf } from "./yaml-limits.ts";

const lineOf = (text: string) => excessOf(new Lexer().lex(text))?.line ?? null;
const nested = (levels: number) => Array.from({ length: levels }, (_, i) => `${" ".repeat(i)}a:\n`).join("");

it.each([
  ["brackets", `a: 1\nb: ${"[".repeat(401)}`, 2],
  ["braces over lines", `\n${"{a:\n".repeat(500)}`, 402],
  ["dashes", "- ".repeat(401), 1],
  ["question marks", `a\n---\n${"? ".repeat(401)}`, 3],
  ["indentation", nested(500), 402],
])("finds the line of %s that nest too deep", (_, text, line) => {
  expect(lineOf(text)).toBe(line);
});

it("finds the line of the first token beyond 2,000,000, before a parser takes a gigabyte for them", () => {
  const tokens = Array.from({ length: 1_000_001 }, () => ["a", "\n"]).flat();
  expect(excessOf(tokens)).toEqual({ line: 1_000_001, what: "more than 2000000 YAML tokens" });
  expect(excessOf(tokens.slice(2))).toBe(null);
});

it("allows long and wide files, brackets in strings, and 400 levels", () => {
  const row = '- id: "[[[ {"\n  t: |\n    [ {\n  plain: is it [ or {\n  list: [[1, 2], {a: [-3, - 4]}]\n';
  expect(lineOf(row.repeat(500))).toBe(null);
  expect(lineOf(JSON.stringify(Array.from({ length: 1000 }, (_, i) => ({ id: i, text: ["[", "- "] }))))).toBe(
    null,
  );
  expect(lineOf(`${"[".repeat(400)}${"]".repeat(400)}`)).toBe(null);
});
