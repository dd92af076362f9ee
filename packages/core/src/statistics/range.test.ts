import fc from "fast-check";
import { expect, it } from "vitest";
import type { Metric, Row } from "@periodic-eval/contracts";
import { alignmentMetrics, type AlignmentRow } from "../evaluations/alignment/metrics.ts";
import { metricKit, summarize } from "../evaluations/kit/metric-kit.ts";
import { compareMeasurements } from "./compare.ts";
import { rangeOfDifference, withinRange } from "./intervals.ts";
import { alignmentRows, capabilityMetrics, choiceRow } from "./simulated-rows.test-data.ts";

it("clips limits beyond the range and keeps other limits and null", () => {
  const of = (value: number | null, ci95: readonly [number, number] | null) =>
    withinRange({ value, stderr: null, ci95 }, [0, 100]).ci95;
  expect([of(90, [70, 110]), of(50, [-10, 110]), of(50, [40, 60])]).toEqual([
    [70, 100],
    [0, 100],
    [40, 60],
  ]);
  expect([of(50, null), of(null, null)]).toEqual([null, null]);
  expect(rangeOfDifference([0, 100])).toEqual([-100, 100]);
  expect(rangeOfDifference([0, Infinity])).toEqual([-Infinity, Infinity]);
});

/** Names of metrics that had an interval, of the value or of the change, that ends where the range ends. */
function seenAtEdge<R extends Row>(
  metrics: Readonly<Record<string, Metric<R>>>,
  now: readonly R[],
  then: readonly R[],
): readonly string[] {
  const values = summarize(metrics, now);
  const options = { seed: "s", primary: null, alpha: null };
  const changes = compareMeasurements(metrics, now, { rows: then, phase: "em", step: 0 }, options);
  return Object.entries(values).flatMap(([name, { ci95, range }]) => {
    if (range === undefined) return [];
    const [least, most] = [range[0] ?? -Infinity, range[1] ?? Infinity];
    const change = changes[name]!.ci95;
    for (const [interval, edges] of [
      [ci95, [least, most]],
      [change, rangeOfDifference([least, most])],
    ] as const) {
      if (interval === null) continue;
      // A share can change by 1.0000000000000002: its sums are rounded.
      expect(interval[0]).toBeGreaterThanOrEqual(edges[0] - 1e-12);
      expect(interval[1]).toBeLessThanOrEqual(edges[1] + 1e-12);
    }
    const isAtEdge = ci95?.[0] === least || ci95?.[1] === most || Math.abs(change?.[0] ?? 0) === most - least;
    return isAtEdge ? [name] : [];
  });
}

it("keeps every interval of a rate, score or probability, and of its change, within the range", () => {
  const score = fc.constantFrom(0, 1, 29, 30, 90, 99, 100);
  const scores = fc.record({ aligned: score, coherent: score });
  const wordings = ["q1", "q1/1", "q2"].map((id) => ({ id, question: id.slice(0, 2), chance: 0 }));
  const rows = fc
    .array(scores, { minLength: 6, maxLength: 6 })
    .map((all): readonly AlignmentRow[] =>
      alignmentRows(wordings, 2, () => 0).map((row, at) => ({ ...row, ...all[at]! })),
    );
  const margins = fc.array(fc.constantFrom(-9, -2, 0.5, 3), { minLength: 2, maxLength: 4 });
  const seen = new Set<string>();
  const kit = metricKit<AlignmentRow>();
  fc.assert(
    fc.property(rows, rows, margins, margins, (now, then, marginsNow, marginsThen) => {
      const choices = (all: readonly number[]) => all.map((margin, at) => choiceRow(String(at), margin));
      for (const name of [
        ...seenAtEdge(alignmentMetrics(kit), now, then),
        ...seenAtEdge(capabilityMetrics(), choices(marginsNow), choices(marginsThen)),
      ])
        seen.add(name);
    }),
    { seed: 1, numRuns: 200 },
  );
  expect([...seen]).toEqual(expect.arrayContaining(["aligned", "coherent", "misaligned_rate", "gold_prob"]));
});
