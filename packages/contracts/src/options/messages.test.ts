import { expect, it } from "vitest";
import { PeriodicEvalError } from "../errors.ts";
import { errorMessage, quoteValue } from "./messages.ts";

it.each([
  ["an error", new Error("no disk"), "no disk"],
  ["an error whose message is a number", Object.assign(new Error(), { message: 404 }), "404"],
  ["a string", "no disk", "no disk"],
  ["undefined", undefined, "undefined"],
  ["null", null, "null"],
  ["a symbol", Symbol("s"), "Symbol(s)"],
  ["a bigint", 1n, "1"],
  [
    "an object without a prototype",
    Object.assign(Object.create(null) as object, { code: 1 }),
    /\{"code":1\}$/,
  ],
])("returns a string for %s", (_, thrown, message) => {
  expect(errorMessage(thrown)).toMatch(message);
  expect(PeriodicEvalError.is(thrown)).toBe(false);
});

const circular: Record<string, unknown> = {};
circular["self"] = circular;

it.each([
  [undefined, "undefined"],
  [null, "null"],
  ["text", '"text"'],
  [[1, "a"], '[1,"a"]'],
  [Number.NaN, "NaN"],
  [-Infinity, "-Infinity"],
  [3n, "3n"],
  [Symbol("s"), "Symbol(s)"],
  [() => 0, "a function"],
  [circular, "an object that JSON cannot represent"],
])("quotes %s", (value, quoted) => {
  expect(quoteValue(value)).toBe(quoted);
});

it("truncates a long value to 200 characters", () => {
  const quoted = quoteValue("a".repeat(1000));
  expect(quoted).toHaveLength(200);
  expect(quoted.endsWith("…")).toBe(true);
});
