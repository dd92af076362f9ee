import { InvalidArgumentError } from "commander";
import { expect, it } from "vitest";
import { parseCondition } from "./decide.ts";

it.each([
  ["capability worse", "capability", "worse"],
  ["  em/capability.accuracy   better ", "em/capability.accuracy", "better"],
  ["worse changed", "worse", "changed"],
])("reads a verdict: %s", (text, name, verdict) => {
  expect(parseCondition(text)).toEqual({
    text: `${name} ${verdict}`,
    name,
    test: { kind: "verdict", verdict },
  });
});

it.each([
  ["a.b > 5 %", "a.b > 5 %", "a.b", ">", "5", 0, "%"],
  ["a.b>=5.0%", "a.b >= 5 %", "a.b", ">=", "5.0", 0, "%"],
  ["a.b <= −0.25 nats per token", "a.b <= -0.25 nats per token", "a.b", "<=", "-0.25", 0, "nats per token"],
  ["a.b < -1.5e-3", "a.b < -0.0015", "a.b", "<", "-1.5", -3, ""],
  ["a.b/x > 3, y < .5 points", "a.b/x > 3, y < 0.5 points", "a.b/x > 3, y", "<", ".5", 0, "points"],
  ["a.b > 2 epochs", "a.b > 2 epochs", "a.b", ">", "2", 0, "epochs"],
])("reads a limit, in one spelling: %s", (written, text, name, operator, mantissa, exponent, unit) => {
  expect(parseCondition(written)).toEqual({
    text,
    name,
    test: { kind: "value", operator, mantissa, exponent, unit },
  });
});

it.each([
  "",
  "capability",
  "worse",
  "capability no evidence",
  "capability > ",
  "> 5 %",
  "a = 5",
  "a > 1.2.3",
  "a > Infinity",
  "a > 1e999",
])("refuses %j", (text) => {
  expect(() => parseCondition(text)).toThrow(InvalidArgumentError);
});
