import { describe, expect, test } from "vitest";
import { MeasurementCosts, type MeasurementTime } from "./measurement-costs.ts";

const look = (items: number, seconds: number, more: Partial<MeasurementTime> = {}): MeasurementTime => ({
  items,
  seconds,
  afterFirstCall: null,
  aroundSeconds: 0,
  isWarm: true,
  ...more,
});
const start = (items: number, seconds: number, more: Partial<MeasurementTime> = {}) =>
  look(items, seconds, { isWarm: false, ...more });
function learned(...times: readonly MeasurementTime[]): MeasurementCosts {
  const costs = new MeasurementCosts();
  for (const time of times) costs.learn("a", time);
  return costs;
}

test("nothing is known of what was not measured", () => {
  expect([learned().of("a"), learned().end("a", 10)]).toEqual([null, null]);
});

describe("an item", () => {
  test("costs what progress tells; what is beside the items is told by warm looks", () => {
    // Of 35 s, 90 items took 9: 25 beside the 10 of the first call, of which a warm look shows 2.
    const cold = start(100, 35, { afterFirstCall: { items: 90, seconds: 9 } });
    expect(learned(cold).of("a")).toEqual({ fixed: 0, perItem: 0.1 });
    const { fixed, perItem } = learned(cold, look(20, 4)).of("a")!;
    expect([fixed, perItem]).toEqual([expect.closeTo(2), expect.closeTo(0.1)]);
  });

  test("counts as much as all others: a small look that was quick tells little", () => {
    const costs = learned(
      start(152, 56.3, { afterFirstCall: { items: 136, seconds: 45.4 } }),
      look(3, 0.79 * 0.6),
    );
    expect(costs.of("a")!.perItem).toBeCloseTo(45.4 / 136);
  });

  test("costs what a smaller look saved of the start, where nothing was told", () => {
    // 60 s and 35 s: 25 s for 50 items; 10 s beside them.
    const { fixed, perItem } = learned(start(100, 60), look(50, 35)).of("a")!;
    expect([fixed, perItem]).toEqual([expect.closeTo(10), expect.closeTo(0.5)]);
  });

  test("costs what it does now, once the latest looks have more items than the start", () => {
    const cold = start(100, 10, { afterFirstCall: { items: 90, seconds: 9 } });
    const slower = look(60, 12, { afterFirstCall: { items: 50, seconds: 10 } });
    expect(learned(cold, slower).of("a")!.perItem).toBeCloseTo(0.1);
    expect(learned(cold, slower, slower).of("a")!.perItem).toBeCloseTo(0.2);
  });

  test("is not dearer for one look in a pause of the machine", () => {
    const usual = look(40, 4);
    expect(learned(start(100, 10), usual, look(40, 60), usual).of("a")).toEqual({
      fixed: 0,
      perItem: expect.closeTo(0.1) as number,
    });
  });
});

describe("the end", () => {
  test("takes what the start took, though the few items of a look were quick or slow", () => {
    // 7 items scatter by 0.7 / √7, 26 %: 17.43 s are within it both of 15.0 s and of 19.9 s.
    for (const seconds of [2.34, 3.1])
      expect(learned(start(45, 17.43), look(7, seconds)).end("a", 45)!.expected).toBeCloseTo(17.43);
  });

  test("takes what later looks tell, once they tell more than the scatter of their items", () => {
    // A first call of 30 s that no progress told of: 64 items took 6.4 s, all take 10 s and 0.7 / √64 of it.
    const quick = learned(start(100, 40), look(64, 6.4), look(64, 6.4));
    expect(quick.end("a", 100)).toEqual({
      expected: expect.closeTo(10 * (1 + 0.7 / 8)) as number,
      doubtful: 0,
    });
    // Twice as slow as the start.
    const slow = learned(start(100, 10), look(100, 20));
    expect(slow.end("a", 100)).toEqual({
      expected: expect.closeTo(20 * (1 - 0.7 / 10)) as number,
      doubtful: 0,
    });
  });

  test("is in doubt by what the start took beside its items, until a warm look tells", () => {
    const cold = start(100, 35, { afterFirstCall: { items: 90, seconds: 9 }, aroundSeconds: 1 });
    expect(learned(cold).end("a", 100)).toEqual({ expected: 11, doubtful: 25 });
    const costs = learned(cold);
    const warm = look(20, 4, { aroundSeconds: 1 });
    expect(costs.end("a", 100, warm)).toEqual({ expected: expect.closeTo(13) as number, doubtful: 0 });
    expect(costs.end("a", 100)).toEqual({ expected: 11, doubtful: 25 });
  });

  test("goes by the start after any number of small looks, and by that of the latest phase", () => {
    const small = Array.from({ length: 20 }, () => look(10, 0.7));
    expect(learned(start(100, 10), ...small).end("a", 100)!.expected).toBeGreaterThan(8);
    expect(learned(start(100, 10), ...small, start(100, 30), look(10, 2.6)).end("a", 100)!.expected).toBe(30);
  });
});
