import { expect, it } from "vitest";
import { quoteValue } from "./quote-value.ts";

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
