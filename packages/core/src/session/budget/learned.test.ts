import { describe, expect, it } from "vitest";
import { MeasurementCosts, type MeasurementTime } from "./learned.ts";

const warm = (rows: number, seconds: number, more: Partial<MeasurementTime> = {}): MeasurementTime => ({
  rows,
  seconds,
  afterFirstCall: null,
  aroundSeconds: 0,
  isWarm: true,
  ...more,
});
const start = (rows: number, seconds: number, more: Partial<MeasurementTime> = {}) =>
  warm(rows, seconds, { isWarm: false, ...more });
function learned(...times: readonly MeasurementTime[]): MeasurementCosts {
  const costs = new MeasurementCosts();
  for (const time of times) costs.learn("a", time);
  return costs;
}

it("returns null for an id that was not measured", () => {
  expect([learned().of("a"), learned().end("a", 10)]).toEqual([null, null]);
});

describe("the cost per item", () => {
  it("comes from progress, and the fixed cost from warm measurements", () => {
    // 90 rows took 9 of 35 s. The first call cost 25 s beyond its 10 rows; a warm measurement shows that 2 s of them recur.
    const cold = start(100, 35, { afterFirstCall: { rows: 90, seconds: 9 } });
    expect(learned(cold).of("a")).toEqual({ fixed: 0, perRow: 0.1 });
    const { fixed, perRow } = learned(cold, warm(20, 4)).of("a")!;
    expect([fixed, perRow]).toEqual([expect.closeTo(2), expect.closeTo(0.1)]);
  });

  it("is weighted by rows: a small, fast measurement changes little", () => {
    const costs = learned(
      start(152, 56.3, { afterFirstCall: { rows: 136, seconds: 45.4 } }),
      warm(3, 0.79 * 0.6),
    );
    expect(costs.of("a")!.perRow).toBeCloseTo(45.4 / 136);
  });

  it("comes from what a smaller measurement saved against the start, without progress", () => {
    // 60 s and 35 s: 25 s for 50 rows; 10 s are fixed.
    const { fixed, perRow } = learned(start(100, 60), warm(50, 35)).of("a")!;
    expect([fixed, perRow]).toEqual([expect.closeTo(10), expect.closeTo(0.5)]);
  });

  it("follows the latest measurements once they have more rows than the start", () => {
    const cold = start(100, 10, { afterFirstCall: { rows: 90, seconds: 9 } });
    const slower = warm(60, 12, { afterFirstCall: { rows: 50, seconds: 10 } });
    expect(learned(cold, slower).of("a")!.perRow).toBeCloseTo(0.1);
    expect(learned(cold, slower, slower).of("a")!.perRow).toBeCloseTo(0.2);
  });

  it("is not raised by one measurement during a pause of the machine", () => {
    const usual = warm(40, 4);
    expect(learned(start(100, 10), usual, warm(40, 60), usual).of("a")).toEqual({
      fixed: 0,
      perRow: expect.closeTo(0.1) as number,
    });
  });
});

describe("the cost of the end", () => {
  it("stays that of the start, even if the few rows of a measurement are fast or slow", () => {
    // 7 rows scatter by 0.7 / √7 = 26 %: 17.43 s are within that range of both 15.0 s and 19.9 s.
    for (const seconds of [2.34, 3.1])
      expect(learned(start(45, 17.43), warm(7, seconds)).end("a", 45)!.expected).toBeCloseTo(17.43);
  });

  it("follows later measurements once they differ by more than the scatter of their rows", () => {
    // A first call of 30 s without progress: 64 rows took 6.4 s, so all take 10 s, plus 0.7 / √64 of it.
    const quick = learned(start(100, 40), warm(64, 6.4), warm(64, 6.4));
    expect(quick.end("a", 100)).toEqual({
      expected: expect.closeTo(10 * (1 + 0.7 / 8)) as number,
      doubtful: 0,
    });
    // Twice as slow as the start.
    const slow = learned(start(100, 10), warm(100, 20));
    expect(slow.end("a", 100)).toEqual({
      expected: expect.closeTo(20 * (1 - 0.7 / 10)) as number,
      doubtful: 0,
    });
  });

  it("discounts the start's fixed seconds until a warm measurement shows which recur", () => {
    const cold = start(100, 35, { afterFirstCall: { rows: 90, seconds: 9 }, aroundSeconds: 1 });
    expect(learned(cold).end("a", 100)).toEqual({ expected: 11, doubtful: 25 });
    const costs = learned(cold);
    const later = warm(20, 4, { aroundSeconds: 1 });
    expect(costs.end("a", 100, later)).toEqual({ expected: expect.closeTo(13) as number, doubtful: 0 });
    expect(costs.end("a", 100)).toEqual({ expected: 11, doubtful: 25 });
  });

  it("follows the start of the latest phase after any number of small measurements", () => {
    const small = Array.from({ length: 20 }, () => warm(10, 0.7));
    expect(learned(start(100, 10), ...small).end("a", 100)!.expected).toBeGreaterThan(8);
    expect(learned(start(100, 10), ...small, start(100, 30), warm(10, 2.6)).end("a", 100)!.expected).toBe(30);
  });
});
