import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { detectableShare, mcnemarExact, newcombePaired, type Cells } from "./paired-tests.ts";

describe("mcnemarExact", () => {
  // scipy 1.17.1: stats.binomtest(b, b + c, .5).pvalue
  it.each<[Cells, number]>([
    [[0, 600, 520, 0], 0.018207019279300136],
    [[3, 1100, 1000, 0], 0.03072070786424249],
    [[0, 40, 5, 0], 7.878384167270269e-8],
    [[1, 0, 1, 2], 1],
  ])("%j", (cells, expected) => expect(Math.abs(mcnemarExact(cells) / expected - 1)).toBeLessThan(1e-10));

  it("equals 2 · 2^-5 for 5 of 5 in one direction", () => {
    expect(mcnemarExact([3, 5, 0, 3])).toBe(0.0625);
  });
});

describe("newcombePaired", () => {
  const cells = fc
    .tuple(fc.nat(300), fc.nat(300), fc.nat(300), fc.nat(300))
    .filter((all) => all.some((count) => count > 0));

  it("changes sign when the measurements are swapped, contains the difference and lies in [−1, 1]", () => {
    fc.assert(
      fc.property(cells, ([a, b, c, d]) => {
        const { delta, ci95 } = newcombePaired([a, b, c, d])!;
        const turned = newcombePaired([a, c, b, d])!;
        expect(turned.delta).toBeCloseTo(-delta, 12);
        expect(turned.ci95[0]).toBeCloseTo(-ci95[1], 12);
        expect(ci95[0]).toBeLessThanOrEqual(delta);
        expect(ci95[1]).toBeGreaterThanOrEqual(delta);
        expect(Math.max(...ci95.map(Math.abs))).toBeLessThanOrEqual(1 + 1e-12);
      }),
    );
  });

  it("returns null without pairs", () => {
    expect(newcombePaired([0, 0, 0, 0])).toBeNull();
  });
});

describe("detectableShare", () => {
  it.each([
    [20, 0],
    [50, 0.1],
    [100, 0.2],
    [200, 0.05],
    [200, 0.3],
    [1172, 0.1],
  ])(
    "is detected by the exact test with a power of 0.8 to 0.95 for %d pairs with share %d differing",
    (n, share) => {
      for (const alpha of [0.05, 0.01]) {
        const differing = Math.round(n * share);
        const delta = detectableShare([n - differing, differing, 0, 0], alpha)!;
        const found = exactPower(n, Math.max(share, delta), delta, alpha);
        expect(found).toBeGreaterThan(0.8);
        expect(found).toBeLessThan(0.95);
      }
    },
  );

  it("is eight points, not five, for 200 questions of which 15 % differ", () => {
    expect(detectableShare([100, 15, 15, 70], 0.05)).toBeCloseTo(0.081, 3);
  });

  it("is null when even a change of all pairs in one direction is not significant", () => {
    // 2 · 2^-5 = 0.0625 > 0.05 ≥ 2 · 2^-6.
    expect(detectableShare([5, 0, 0, 0], 0.05)).toBeNull();
    expect(detectableShare([6, 0, 0, 0], 0.05)).toBe(1);
    expect(detectableShare([0, 0, 0, 0], 0.05)).toBeNull();
    expect(detectableShare([100, 0, 0, 0], 0)).toBeNull();
  });
});

/** Returns P(exact McNemar ≤ alpha) for n pairs of which a share `differing` differs, (differing + delta)/2 in one direction. */
function exactPower(n: number, differing: number, delta: number, alpha: number): number {
  const oneWay = (differing + delta) / 2 / differing;
  let found = 0;
  for (let m = 0; m <= n; m++) {
    const odds = binomial(n, m, differing);
    if (odds < 1e-10) continue;
    for (let b = 0; b <= m; b++) {
      const share = binomial(m, b, oneWay);
      if (share > 1e-12 && mcnemarExact([0, b, m - b, 0]) <= alpha) found += odds * share;
    }
  }
  return found;
}

function binomial(n: number, k: number, p: number): number {
  if (p === 1) return k === n ? 1 : 0;
  let log = (n - k) * Math.log1p(-p);
  for (let i = 1; i <= k; i++) log += Math.log(((n - k + i) / i) * p);
  return Math.exp(log);
}
