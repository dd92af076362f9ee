import { expect, it } from "vitest";
import { strictJson } from "./strict-json.ts";

it("returns the value of JSON", () => {
  expect(strictJson('{"a": [1, null]}')).toEqual({ value: { a: [1, null] }, fault: null });
});

it.each([
  ["other text", "{a: 1}", "invalid JSON (", "JSON"],
  ["an empty string", " \n", "an empty text", "JSON"],
  ["a key twice", '[{"a": 1, "\\u0061": 2}]', 'the key "a" twice in one object', "keys that differ"],
])("refuses %s", (_, text, got, expected) => {
  expect(strictJson(text).fault).toMatchObject({ got: expect.stringContaining(got), expected });
});
