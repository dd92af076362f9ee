import type { Row } from "@periodic-eval/core";
import { metricKit, summarize } from "@periodic-eval/core/evaluations";
import { expect, it } from "vitest";
import { pooledSpread, taskSpread } from "./task-part.ts";

interface Scored extends Row {
  readonly value: number | null;
}

const rowsOf = (values: readonly (number | null)[]): readonly Scored[] =>
  values.map((value, id) => ({ id: String(id), value }));

it("computes the standard error of a share over documents: √(1/16) for [1, 1, 0, 1] with s² = 1/4", () => {
  const kit = metricKit<Scored>();
  const metric = kit.rate((row) => (row.value === null ? null : row.value === 1));
  const rows = rowsOf([1, 1, null, 0, 1]);
  const { acc } = summarize({ acc: metric }, rows);
  expect(taskSpread(metric as never, rows, acc!)).toEqual({ stderr: 0.25, n: 4 });
  // The snapshot's standard error is √(3/4 · 1/4 / 4), which is smaller by the factor √(3/4).
  expect(acc!.stderr).toBeCloseTo(0.25 * Math.sqrt(3 / 4), 15);
  const one = rowsOf([1]);
  expect(taskSpread(metric as never, one, summarize({ acc: metric }, one)["acc"]!)).toEqual({
    stderr: null,
    n: 1,
  });
});

it("returns the snapshot's standard error for a ratio", () => {
  const kit = metricKit<Scored>();
  const metric = kit.ratio((row) => [row.value!, 2]);
  const rows = rowsOf([3, 5, 4]);
  const { perplexity } = summarize({ perplexity: metric }, rows);
  expect(taskSpread(metric as never, rows, perplexity!)).toEqual({ stderr: perplexity!.stderr, n: 3 });
});

it("pools the standard errors of the tasks in a group", () => {
  // lm_eval.api.metrics.pooled_sample_stderr([0.25, 0.1, 0.05], [4, 25, 100])
  const parts = [
    { stderr: 0.25, n: 4 },
    { stderr: 0.1, n: 25 },
    { stderr: 0.05, n: 100 },
  ];
  // (3·0.0625·4 + 24·0.01·25 + 99·0.0025·100) / 126 = 31.5 / 126 = 0.25; √(0.25 / 129)
  expect(pooledSpread(parts)).toEqual({ stderr: Math.sqrt(0.25 / 129), n: 129 });
  expect(pooledSpread([...parts, { stderr: null, n: 1 }]).stderr).toBeNull();
  expect(pooledSpread([]).stderr).toBeNull();
});
