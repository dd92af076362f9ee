import { expect, it } from "vitest";
import { shareSeconds, type Wanted } from "./share-seconds.ts";

const items = (whole: number, least: number) => ({ whole, least, step: 1, unit: "items" });
const one: Wanted = { id: "a", size: items(200, 40), measurements: 4, fixed: 0, perRow: 0.1 };

it("keeps every measurement whole if all fit", () => {
  expect(shareSeconds(80, [one]).get("a")).toEqual({ measurements: 4, rows: 200 });
});

it("reduces the items of every measurement before it gives up one", () => {
  expect(shareSeconds(40, [one]).get("a")).toEqual({ measurements: 4, rows: 100 });
  expect(shareSeconds(16, [one]).get("a")).toEqual({ measurements: 4, rows: 40 });
});

it("takes fewer measurements, of at least the smallest size, if the smallest do not all fit", () => {
  expect(shareSeconds(15.9, [one]).get("a")).toEqual({ measurements: 3, rows: 53 });
  expect(shareSeconds(4, [one]).get("a")).toEqual({ measurements: 1, rows: 40 });
  expect(shareSeconds(3.9, [one]).get("a")).toEqual({ measurements: 0, rows: 0 });
  expect(shareSeconds(-1, [one]).get("a")).toEqual({ measurements: 0, rows: 0 });
});

it("reduces all evaluations by the same share of the difference between their whole and smallest sizes", () => {
  const other: Wanted = {
    ...one,
    id: "b",
    // Five completions of each of 8 items.
    size: { whole: 40, least: 8, step: 8, unit: "completions of each item" },
    perRow: 1,
  };
  // Whole 240 s, smallest 48 s: 144 s is half-way.
  const shares = shareSeconds(144, [one, other]);
  expect(shares.get("a")).toEqual({ measurements: 4, rows: 120 });
  expect(shares.get("b")).toEqual({ measurements: 4, rows: 24 });
});

it("takes the fixed seconds of each measurement into account", () => {
  expect(shareSeconds(56, [{ ...one, fixed: 10 }]).get("a")).toEqual({ measurements: 4, rows: 40 });
  expect(shareSeconds(55, [{ ...one, fixed: 10 }]).get("a")).toEqual({ measurements: 3, rows: 83 });
});
