import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { subsetOrder } from "../evaluations/kit/subset.ts";
import { wilson } from "./intervals.ts";
import { mcnemarExact, newcombePaired, type Cells } from "./paired.ts";
import { passAtK, passHatK } from "./pass-k.ts";

interface Goldens {
  readonly wilson: readonly { hits: number; n: number; ci95: readonly [number, number] | null }[];
  readonly mcnemar: readonly { cells: Cells; p: number }[];
  readonly newcombe: readonly { cells: Cells; result: readonly [number, number, number] }[];
  readonly subset_order: readonly { seed: number; n: number; order: readonly number[] }[];
  readonly pass_k: readonly { n: number; c: number; k: number; pass_at_k: number; pass_hat_k: number }[];
}

const file = join(process.env["PERIODIC_EVAL_FIXTURES"] ?? "../shared/fixtures", "statistics/goldens.json");
const isThere = existsSync(file);

/** Every number within 1e-12 of the reference's. */
function expectClose(got: readonly number[] | null | undefined, expected: readonly number[]): void {
  expect(got).toHaveLength(expected.length);
  expected.forEach((value, i) => expect(Math.abs(got![i]! - value)).toBeLessThanOrEqual(1e-12));
}

describe.skipIf(!isThere)(`statistics against ${file}${isThere ? "" : " (absent)"}`, () => {
  const goldens = isThere ? (JSON.parse(readFileSync(file, "utf8")) as Goldens) : null;

  it.each(goldens?.wilson ?? [])("wilson $hits of $n", ({ hits, n, ci95 }) => {
    if (ci95 === null) expect(wilson(hits, n)).toBeNull();
    else expectClose(wilson(hits, n), ci95);
  });

  it.each(goldens?.mcnemar ?? [])("mcnemar $cells", ({ cells, p }) =>
    expectClose([mcnemarExact(cells)], [p]),
  );

  it.each(goldens?.newcombe ?? [])("newcombe $cells", ({ cells, result }) => {
    const difference = newcombePaired(cells);
    expectClose(difference && [difference.delta, ...difference.ci95], result);
  });

  it.each(goldens?.subset_order ?? [])("subset order of seed $seed, n $n", ({ seed, n, order }) => {
    expect(subsetOrder(seed, n).slice(0, order.length)).toEqual(order);
  });

  it.each(goldens?.pass_k ?? [])("pass@$k and pass^$k of $c in $n", ({ n, c, k, pass_at_k, pass_hat_k }) => {
    expectClose([passAtK(n, c, k)!, passHatK(n, c, k)!], [pass_at_k, pass_hat_k]);
  });
});
