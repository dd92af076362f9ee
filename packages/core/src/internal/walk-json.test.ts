import { expect, it } from "vitest";
import { walkJson } from "./walk-json.ts";

it("visits structural characters with their levels, and none inside a string", () => {
  const seen: [string, number][] = [];
  walkJson('{"a{\\"[": [{}, "]:"], "b": 1}', (sign, level) => seen.push([sign, level]) > 0);
  expect(seen).toEqual([
    ["{", 0],
    [":", 1],
    ["[", 1],
    ["{", 2],
    ["}", 2],
    ["]", 1],
    [":", 1],
    ["}", 0],
  ]);
});

it("stops when the visitor returns false", () => {
  let count = 0;
  walkJson("[".repeat(1000), (_, level) => {
    count += 1;
    return level < 9;
  });
  expect(count).toBe(10);
});
