import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { subsetOrder } from "../evaluations/kit/subset.ts";
import { expectClose } from "../../../testing/src/expect-close.test-data.ts";
import { findFixtures, reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { wilson, passAtK, passHatK } from "./intervals.ts";
import { mcnemarExact, newcombePaired, type Cells } from "./paired-tests.ts";

/** Sections that a file may leave out. */
interface Goldens {
  readonly wilson?: readonly { hits: number; n: number; ci95: readonly [number, number] | null }[];
  readonly mcnemar?: readonly { cells: Cells; p: number }[];
  readonly newcombe?: readonly { cells: Cells; result: readonly [number, number, number] }[];
  readonly subset_order?: readonly { seed: number; n: number; order: readonly number[] }[];
  readonly pass_k?: readonly { n: number; c: number; k: number; pass_at_k: number; pass_hat_k: number }[];
}

/** float64 arithmetic on numbers of at most 1. */
function expectAllClose(got: readonly number[] | null | undefined, expected: readonly number[]): void {
  expect(got).toHaveLength(expected.length);
  expected.forEach((value, i) => expectClose(got![i]!, value, { absolute: 1e-12 }, `number ${i}`));
}

const files = findFixtures(/^statistics\/[^/]*\.json$/);
if (files.length === 0) reportMissing("statistics/*.json");

describe.each(files)("statistics against %s", (file) => {
  const goldens = JSON.parse(readFileSync(file, "utf8")) as Goldens;

  it.each(goldens.wilson ?? [])("wilson $hits of $n", ({ hits, n, ci95 }) => {
    if (ci95 === null) expect(wilson(hits, n)).toBeNull();
    else expectAllClose(wilson(hits, n), ci95);
  });

  it.each(goldens.mcnemar ?? [])("mcnemar $cells", ({ cells, p }) =>
    expectAllClose([mcnemarExact(cells)], [p]),
  );

  it.each(goldens.newcombe ?? [])("newcombe $cells", ({ cells, result }) => {
    const difference = newcombePaired(cells);
    expectAllClose(difference && [difference.delta, ...difference.ci95], result);
  });

  it.each(goldens.subset_order ?? [])("subset order of seed $seed, n $n", ({ seed, n, order }) => {
    expect(subsetOrder(seed, n).slice(0, order.length)).toEqual(order);
  });

  it.each(goldens.pass_k ?? [])("pass@$k and pass^$k of $c in $n", ({ n, c, k, pass_at_k, pass_hat_k }) => {
    expectAllClose([passAtK(n, c, k)!, passHatK(n, c, k)!], [pass_at_k, pass_hat_k]);
  });
});
