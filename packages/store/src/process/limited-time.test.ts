import { expect, it } from "vitest";
import { limitedTime } from "./limited-time.ts";

it("ends work at its limit, refuses more once such work in a row took the sum, and returns results and errors unchanged", () => {
  const limited = limitedTime("the pattern", { one: 0.05, all: 0.1 });
  const slow = () => limited(() => /(a+)+$/u.test(`${"a".repeat(50)}!`));
  expect(limited(() => 7)).toBe(7);
  const fault = new Error("own");
  expect(() =>
    limited(() => {
      throw fault;
    }),
  ).toThrow(fault);
  const isSlow = "the pattern takes more than 0.05 s for this text";
  expect(slow).toThrow(isSlow);
  expect(limited(() => 8)).toBe(8);
  expect(slow).toThrow(isSlow);
  expect(slow).toThrow(isSlow);
  expect(slow).toThrow("not run, because the pattern took 0.1 s for the texts before");
});
