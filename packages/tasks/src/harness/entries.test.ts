import type { Row } from "@periodic-eval/core";
import { metricKit } from "@periodic-eval/core/evaluations";
import { expect, it } from "vitest";
import { entryName, metricKey, placeOf, entriesOf } from "./entries.ts";

interface Grouped extends Row {
  readonly by: readonly string[];
}

const tree = (rows: readonly (readonly string[])[]) => {
  const kit = metricKit<Grouped>();
  const metrics = { acc: kit.rate(() => true, { by: (row) => row.by }), other: kit.rate(() => true) };
  const entries = entriesOf(
    "mmlu",
    metrics as never,
    rows.map((by, id) => ({ id: String(id), by })),
  );
  return entries.map(({ name, rows: { length }, children }) => [name, length, children]);
};

it("puts a group below the group that contains all its rows, in any order of names", () => {
  const rows = [["stem", "algebra"], ["stem", "physics"], ["stem", "physics"], ["humanities", "law"], []];
  const expected = [
    ["mmlu", 5, ["mmlu_stem", "mmlu_humanities"]],
    ["mmlu_stem", 3, ["mmlu_algebra", "mmlu_physics"]],
    ["mmlu_algebra", 1, []],
    ["mmlu_physics", 2, []],
    // If two groups have the same rows, the later one is below.
    ["mmlu_humanities", 1, ["mmlu_law"]],
    ["mmlu_law", 1, []],
  ];
  expect(tree(rows)).toEqual(expected);
  const [first, ...rest] = expected;
  const turned = tree(rows.map((by) => (by.includes("stem") ? by.toReversed() : by)));
  expect(turned).toEqual(expect.arrayContaining(rest));
  expect(turned[0]).toEqual(first);
});

it("puts overlapping groups on the same level, and returns one entry for a task without groups", () => {
  expect(tree([["a", "b"], ["a"], ["b"]])).toEqual([
    ["mmlu", 3, ["mmlu_a", "mmlu_b"]],
    ["mmlu_a", 2, []],
    ["mmlu_b", 2, []],
  ]);
  expect(tree([[], []])).toEqual([["mmlu", 2, []]]);
});

it("splits a metric's name into metric, filter and group", () => {
  const names = ["acc", "acc_norm", "exact_match,strict-match"];
  expect(placeOf("acc", names)).toEqual({ metric: "acc", filter: "none", group: null });
  expect(placeOf("acc_norm/high school/us", names)).toEqual({
    metric: "acc_norm",
    filter: "none",
    group: "high school/us",
  });
  const place = placeOf("exact_match,strict-match/en", names);
  expect(place).toEqual({ metric: "exact_match", filter: "strict-match", group: "en" });
  expect(metricKey("gsm8k", place)).toBe("gsm8k_en/exact_match,strict-match");
  expect(entryName("mmlu", "high school/us")).toBe("mmlu_high_school_us");
});
