import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { repeatedKey, walkJson, parsePythonJson } from "./walk-json.ts";

it("visits strings and structural characters with their levels, and none inside a string", () => {
  const seen: [string, number][] = [];
  walkJson('{"a{\\"[": [{}, "]:"], "b": 1}', (sign, level) => seen.push([sign, level]) > 0);
  expect(seen).toEqual([
    ["{", 0],
    ['"', 1],
    [":", 1],
    ["[", 1],
    ["{", 2],
    ["}", 2],
    ['"', 2],
    ["]", 1],
    ['"', 1],
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

describe("repeatedKey", () => {
  it.each([
    ['{"a":1,"a":2}', "a"],
    ['{"a":1,"b":{"c":[{"d":1},{"d":2}],"c":0}}', "c"],
    ['[{"a":1},{"b":"}","b":2}]', "b"],
    ['{"a\\"":1, "a\\u0022" : 2}', 'a"'],
    ['{"é":1,"\\u00e9":2}', "é"],
    ['{"\\\\":1,"\\\\":2}', "\\"],
    ['{"__proto__":1,"__proto__":2}', "__proto__"],
    ['{"a":1,"b":{"a":2},"c":["a","a"]}', null],
    ['{"a":"b","c":"{\\"a\\":1,\\"a\\":2}"}', null],
    ['"a"', null],
    ["12", null],
  ])("of %s is %j", (json, key) => {
    expect(repeatedKey(json)).toBe(key);
  });

  it("is null for what JSON.stringify writes", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(2), (json, indent) => {
        expect(repeatedKey(JSON.stringify(JSON.parse(json), null, indent))).toBe(null);
      }),
      { numRuns: 200 },
    );
  });

  it("is linear in the length: a million quotes and backslashes", () => {
    expect(repeatedKey(JSON.stringify({ a: '\\"'.repeat(500_000), b: "{".repeat(500_000) }))).toBe(null);
  });
});

it("parses NaN and infinite numbers outside of strings", () => {
  // json.dumps({"a": [nan, inf, -inf], "NaN": "NaN, \"Infinity\" \\"}) in Python.
  const text = String.raw`{"a": [NaN, Infinity, -Infinity], "NaN": "NaN, \"Infinity\" \\"}`;
  expect(parsePythonJson(text)).toEqual({ a: [NaN, Infinity, -Infinity], NaN: 'NaN, "Infinity" \\' });
  expect(parsePythonJson("NaN")).toBe(NaN);
});

it.each(['{"a": nan}', '{"a": -NaN}', '{"a": NaN', '{"a": "NaN', '{"a": xNaN}', "{'a': NaN}"])(
  "throws for %s",
  (text) => {
    expect(() => parsePythonJson(text)).toThrow(SyntaxError);
  },
);
