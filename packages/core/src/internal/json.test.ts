import { expect, it } from "vitest";
import { frozenJson } from "./json.ts";

it("copies a value as JSON gives it back, frozen", () => {
  const value = { id: "q", zero: -0, absent: undefined, list: [{ nats: [-1.5, null] }], ["__proto__"]: true };
  const copy = frozenJson(value);
  expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
  expect(Object.is(copy.zero, 0)).toBe(true);
  expect(Object.keys(copy)).toEqual(["id", "zero", "list", "__proto__"]);
  expect([copy, copy.list, copy.list[0], copy.list[0]!.nats].every((one) => Object.isFrozen(one))).toBe(true);
});
