import { expect, it } from "vitest";
import { strictJson } from "./strict-json.ts";

const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;

it("returns the value of JSON with up to 400 levels", () => {
  expect(strictJson('{"a": [1, null]}')).toEqual({ value: { a: [1, null] }, fault: null });
  expect(strictJson(nested(400)).fault).toBe(null);
});

it.each([
  ["deeper values", nested(401), "values nested deeper than 400 levels", "at most 400 levels"],
  ["deeper values that do not end", "[".repeat(100_000), "values nested deeper", "at most 400 levels"],
  ["other text", "{a: 1}", "invalid JSON (", "JSON"],
  ["an empty string", " \n", "an empty text", "JSON"],
  ["a key twice", '[{"a": 1, "\\u0061": 2}]', 'the key "a" twice in one object', "keys that differ"],
])("refuses %s", (_, text, got, expected) => {
  expect(strictJson(text).fault).toMatchObject({ got: expect.stringContaining(got), expected });
});
