import { expect, it } from "vitest";
import { jsonRoundTrip } from "./json.ts";

it("copies a value as JSON gives it back", () => {
  const value = { id: "q", zero: -0, absent: undefined, list: [{ nats: [-1.5, null] }], ["__proto__"]: true };
  const copy = jsonRoundTrip(value);
  expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
  expect(Object.is(copy.zero, 0)).toBe(true);
  expect(Object.keys(copy)).toEqual(["id", "zero", "list", "__proto__"]);
});
