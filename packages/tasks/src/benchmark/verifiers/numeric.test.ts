import { describe, expect, it } from "vitest";
import { numberIn, numberOf } from "./numeric.ts";

describe("numberOf", () => {
  it.each([
    ["42", 42],
    [" -3.50 ", -3.5],
    ["1,234,567.5", 1234567.5],
    ["2e3", 2000],
    ["\u22127", -7],
    ["1/2", 0.5],
    ["\\frac{3}{4}", 0.75],
    ["2*sqrt(3)", 2 * Math.sqrt(3)],
    ["2 pi", 2 * Math.PI],
    ["-(2^3)", -8],
    ["log(e)", 1],
  ])("%s is %d", async (text, expected) => {
    expect(await numberOf(text)).toBeCloseTo(expected, 12);
  });

  it.each([
    "",
    "three",
    "1,2",
    "3 apples",
    "1/0",
    "9^9^9^9",
    "sqrt(-1)",
    "x = 3",
    "import(1)",
    "e.constructor",
    "sqrt",
    "f(x) = 1",
    "1; 2",
    `1${"+1".repeat(200)}`,
  ])("%s is not a number", async (text) => {
    expect(await numberOf(text)).toBeNull();
  });
});

describe("numberIn reads the whole string, or else its last number or fraction", () => {
  it.each([
    ["3/4.", 0.75],
    ["The answer is 3/4.", 0.75],
    ["Between 3-4 we take 10-2 of them, so $1,200 in 2 years: -5", -5],
    ["7 of 9", 9],
    ["it is 3.", 3],
    ["50%", 50],
    ["x-2", 2],
    ["so \\boxed{12}", 12],
  ])("%s: %d", async (text, expected) => {
    expect(await numberIn(text)).toBe(expected);
  });

  it.each([
    "1 000 000",
    "So it is 1 000 000 in all.",
    "1\u202f000",
    "12 345.5",
    "1.000.000",
    "it costs 1.234,50",
    "1'000",
    "1_000",
    "3,5",
    "1234,567",
    "12,34,567",
  ])("returns null for %j: digits are grouped or joined in another way than in 1,234.5", async (text) => {
    expect(await numberIn(text)).toBeNull();
  });

  it.each([
    ["1,000,000", 1e6],
    ["from 1 000 to 2,000", 2000],
    ["in 2020 300 people", 300],
    ["1, 2, 3", 3],
    ["1 2 3", 3],
    ["1,200, then 7", 7],
    ["it is 1,200.", 1200],
  ])("reads %j as %d", async (text, expected) => {
    expect(await numberIn(text)).toBe(expected);
  });

  it("finds no number in prose", async () => {
    expect(await numberIn("none at all")).toBeNull();
  });
});
