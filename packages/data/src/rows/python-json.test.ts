import { expect, it } from "vitest";
import { parsePythonJson } from "./python-json.ts";

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
