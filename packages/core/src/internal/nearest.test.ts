import { expect, it } from "vitest";
import { nearest } from "./nearest.ts";

it("names the candidate with the fewest mistakes", () => {
  expect(nearest("evry", ["at", "every", "times"])).toBe("every");
  expect(nearest("Unit", ["every", "unit"])).toBe("unit");
  expect(nearest("percents", ["percent", "steps", "epochs"])).toBe("percent");
  // One replaced character against two.
  expect(nearest("abc", ["xyc", "abb"])).toBe("abb");
});

it("stays silent where nothing is near", () => {
  expect(nearest("temperature", ["at", "every", "unit"])).toBeNull();
});

it("has nothing to name among none", () => {
  expect(nearest("evry", [])).toBeNull();
});
