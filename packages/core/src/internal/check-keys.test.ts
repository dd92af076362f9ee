import { expect, test } from "vitest";
import { checkKeys } from "./check-keys.ts";

const check = (given: unknown) => () => checkKeys("test options", given as object, ["limit", "signal"]);

test("accepts known keys and names the nearest for an unknown one", () => {
  expect(check({ limit: 1, signal: undefined })).not.toThrow();
  expect(check({ limt: 1 })).toThrow(
    'test options: got the unknown option "limt", expected one of limit, signal. Did you mean "limit"?',
  );
  expect(check({ temperature: 1 })).toThrow("Remove it.");
});

test.each([[null], [undefined], [3], ["limit"], [["limit"]]])(
  "refuses %j, which is not an object",
  (given) => {
    expect(check(given)).toThrow("expected an object of options (limit, signal)");
  },
);
