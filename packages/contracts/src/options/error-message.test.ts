import { expect, it } from "vitest";
import { PeriodicEvalError } from "../errors.ts";
import { errorMessage } from "./error-message.ts";

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
