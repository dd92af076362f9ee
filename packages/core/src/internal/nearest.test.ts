import { expect, it } from "vitest";
import { nearest } from "./nearest.ts";

it("returns the candidate with the fewest typing errors", () => {
  expect(nearest("evry", ["at", "every", "times"])).toBe("every");
  expect(nearest("Unit", ["every", "unit"])).toBe("unit");
  expect(nearest("percents", ["percent", "steps", "epochs"])).toBe("percent");
  // One replaced character instead of two.
  expect(nearest("abc", ["xyc", "abb"])).toBe("abb");
});

it("returns null when no candidate is near", () => {
  expect(nearest("temperature", ["at", "every", "unit"])).toBeNull();
});

it("returns null without candidates", () => {
  expect(nearest("evry", [])).toBeNull();
});
