import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Sampling } from "@periodic-eval/contracts";
import { parseOptions } from "@periodic-eval/contracts/options";
import { namedStream } from "@periodic-eval/core/random";
import { samplingSchema } from "@periodic-eval/contracts/options";
import { drawToken } from "./writing.ts";

const base: Sampling = { maxNewTokens: 1, temperature: 1, seed: "s" };
/** Probabilities .5, .3, .15, .05 at ids 2, 0, 3, 1. */
const logits = Float32Array.from([0.3, 0.05, 0.5, 0.15], Math.log);
/** Returns the token for each of `steps` evenly spaced draws. */
const tokensOf = (sampling: Sampling, steps = 100) =>
  Array.from({ length: steps }, (_, i) => drawToken(logits, sampling, () => (i + 0.5) / steps).token);
const sharesOf = (sampling: Sampling) =>
  [0, 1, 2, 3].map((id) => tokensOf(sampling).filter((token) => token === id).length);

describe("drawToken", () => {
  it("draws by probability in the order of ids", () => {
    expect(sharesOf(base)).toEqual([30, 5, 50, 15]);
    expect(tokensOf(base)[0]).toBe(0);
    expect(tokensOf(base)[99]).toBe(3);
  });

  it("applies temperature", () => {
    // T = 1/2 squares: .25, .09, .0225, .0025 of .365 → 68.5, 24.7, 6.2, 0.7 %.
    expect(sharesOf({ ...base, temperature: 0.5 })).toEqual([25, 0, 69, 6]);
  });

  it("keeps the k most likely tokens", () => {
    // .5 and .3 of .8 → 62.5 and 37.5 %, the most likely first.
    expect(sharesOf({ ...base, topK: 2 })).toEqual([37, 0, 63, 0]);
  });

  it("keeps the fewest tokens that reach p", () => {
    // .5 + .3 = .8 reaches .75. It does not reach .81, so .15 is added: .95 in total.
    expect(sharesOf({ ...base, topP: 0.75 })).toEqual([37, 0, 63, 0]);
    expect(sharesOf({ ...base, topP: 0.81 })).toEqual([31, 0, 53, 16]);
    expect(sharesOf({ ...base, topP: 0.01 })).toEqual([0, 0, 100, 0]);
    // The 3 most likely tokens accumulate .5 / .95 = .526 and .842, so p = .6 keeps two.
    expect(sharesOf({ ...base, topK: 3, topP: 0.6 })).toEqual([37, 0, 63, 0]);
  });

  it("returns nats of the model's distribution", () => {
    expect(drawToken(logits, { ...base, temperature: 0.1, topP: 0.5 }, () => 0)).toEqual({
      token: 2,
      nats: expect.closeTo(Math.log(0.5), 6) as number,
    });
  });

  it("stays within top-k and top-p, and takes one number per token", () => {
    const options = fc.record(
      {
        topP: fc.double({ min: 0.01, max: 1, noNaN: true }),
        topK: fc.integer({ min: 1, max: 20 }),
        temperature: fc.double({ min: 0.05, max: 5, noNaN: true }),
      },
      { requiredKeys: ["temperature"] },
    );
    const values = fc.array(fc.float({ min: -30, max: 30, noNaN: true }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(values, options, fc.string(), (list, restriction, seed) => {
        const some = Float32Array.from(list);
        const stream = namedStream(seed);
        let draws = 0;
        const { token } = drawToken(some, { ...base, ...restriction }, () => {
          draws += 1;
          return stream();
        });
        expect(draws).toBe(1);
        // By definition, a token is kept if fewer than k tokens are more likely, and those have less than p together.
        const weights = list.map((_, id) =>
          Math.exp((some[id]! - Math.max(...some)) / restriction.temperature),
        );
        const order = list.map((_, id) => id).toSorted((a, b) => weights[b]! - weights[a]! || a - b);
        const kept = order.slice(0, restriction.topK ?? list.length);
        const mass = kept.reduce((sum, id) => sum + weights[id]!, 0);
        expect(kept).toContain(token);
        const ahead = kept.slice(0, kept.indexOf(token)).reduce((sum, id) => sum + weights[id]!, 0);
        expect(ahead).toBeLessThanOrEqual((restriction.topP ?? 1) * mass + 1e-9);
      }),
    );
  });

  it("draws from a large vocabulary as if all its tokens were sorted", () => {
    // Steps make ties, and a token of 60 has almost all of the mass.
    const random = namedStream("vocabulary");
    const likely = (spread: number, peak: number) =>
      Float32Array.from({ length: 3000 }, (_, id) =>
        id === 7 ? peak : id % 100 === 3 ? -Infinity : Math.floor(random() * spread) / 4,
      );
    for (const some of [likely(40, 12), likely(2000, 0), likely(40, 900)])
      for (const restriction of [
        { topP: 0.9 },
        { topK: 40 },
        { topK: 2900, topP: 0.99 },
        { topP: 0.9999999 },
      ])
        for (const share of [0, 0.3, 0.999]) {
          const top = Math.max(...some);
          const weights = [...some].map((logit) => Math.exp(logit - top));
          const order = weights.map((_, id) => id).toSorted((a, b) => weights[b]! - weights[a]! || a - b);
          const upTo = (ids: readonly number[], goal: number, isOver: (reached: number) => boolean) => {
            let reached = 0;
            const end = ids.findIndex((id) => isOver((reached += weights[id]!) - goal));
            return end === -1 ? ids.length : end + 1;
          };
          const massOf = (ids: readonly number[]) => ids.reduce((sum, id) => sum + weights[id]!, 0);
          const first = order.slice(0, "topK" in restriction ? restriction.topK : undefined);
          const all = first === order ? massOf(weights.map((_, id) => id)) : massOf(first);
          const { topP = 1 } = restriction as { topP?: number };
          const kept = first.slice(
            0,
            upTo(first, topP * all, (over) => over >= 0),
          );
          const expected = kept[upTo(kept, share * massOf(kept), (over) => over > 0) - 1];
          expect(drawToken(some, { ...base, ...restriction }, () => share).token).toBe(expected);
        }
  });

  it("returns NaN for the nats of NaN logits", () => {
    for (const restriction of [{}, { topK: 2 }, { topP: 0.5 }])
      expect(
        drawToken(Float32Array.of(NaN, NaN, NaN), { ...base, ...restriction }, () => 0.5).nats,
      ).toBeNaN();
  });
});

it.each([
  [{ maxNewTokens: 0 }, /maxNewTokens: got 0/],
  [{ temperature: -1 }, /temperature: got -1/],
  [{ temperature: NaN }, /temperature/],
  [{ topP: 0 }, /topP: got 0/],
  [{ topP: 1.1 }, /topP: got 1.1/],
  [{ topK: 0 }, /topK: got 0/],
  [{ stop: ["a", ""] }, /stop/],
  [{ top_p: 0.5 }, /top_p/],
])("refuses %j", (wrong, message) => {
  const check = (sampling: unknown) => parseOptions("sampling", samplingSchema, sampling);
  expect(() => check({ ...base, ...wrong })).toThrow(message);
  expect(() => check(base)).not.toThrow();
});
