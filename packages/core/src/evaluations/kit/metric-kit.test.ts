import { describe, expect, it } from "vitest";
import {
  clusteredShareEstimate,
  moverDifference,
  shareEstimate,
  wilson,
} from "../../statistics/intervals.ts";
import { metricKit, primaryMetric, summarize } from "./metric-kit.ts";

interface Answer {
  readonly id: string;
  readonly right: boolean | null;
  readonly nats: number;
  readonly tokens: number;
  readonly topic: string;
  readonly question: string;
}

const answer = (id: string, right: boolean | null, nats: number, tokens = 1, topic = "a"): Answer => ({
  id,
  right,
  nats,
  tokens,
  topic,
  question: id[0]!,
});
const { rate, mean, ratio, contrast } = metricKit<Answer>();
const rows = [
  answer("p1", true, -1, 2),
  answer("p2", false, -3, 4),
  answer("q1", true, -2, 2, "b"),
  answer("q2", null, -6, 4, "b"),
];

describe("summarize", () => {
  it("counts observed rows only", () => {
    // 2 of 3: the row that was not scored is no miss.
    const { accuracy } = summarize({ accuracy: rate((row) => row.right, { higherIsBetter: true }) }, rows);
    expect(accuracy).toEqual({
      value: 2 / 3,
      n: 3,
      stderr: Math.sqrt(((2 / 3) * (1 / 3)) / 3),
      ci95: [...wilson(2, 3)!],
      estimand: "given_questions",
      unit: "share",
      higher_is_better: true,
      range: [0, 1],
    });
  });

  it("clips the interval of a mean or ratio to its range, and records the range", () => {
    const scored = [100, 100, 40].map((score, at) => ({ ...rows[0]!, id: `s${at}`, nats: score }));
    const { open, points, cluster, least } = summarize(
      {
        open: mean((row) => row.nats),
        points: mean((row) => row.nats, { range: [0, 100] }),
        cluster: ratio((row) => [row.nats, 1], { range: [0, 100], cluster: (row) => row.id }),
        least: mean((row) => row.nats - 40, { range: [0, Infinity] }),
      },
      scored,
    );
    // 80 ± 4.303 · 20: t of two degrees of freedom, (2p − 1) / √(2p(1 − p)), knows no scale.
    const low = 80 - (0.95 / Math.sqrt(2 * 0.975 * 0.025)) * 20;
    expect(open).toMatchObject({ value: 80, ci95: [expect.closeTo(low, 9), expect.closeTo(160 - low, 9)] });
    expect(open).not.toHaveProperty("range");
    expect(points).toMatchObject({ value: 80, stderr: 20, ci95: [0, 100], range: [0, 100] });
    expect(cluster).toMatchObject({ value: 80, ci95: [0, 100], range: [0, 100] });
    expect(least).toMatchObject({ value: 40, ci95: [0, expect.closeTo(120 - low, 9)], range: [0, null] });
  });

  it("uses Wilson's interval for a share of parts when all rows agree, and clips the interval otherwise", () => {
    const share = (of: number) =>
      summarize({ share: ratio((row) => [of * row.tokens, row.tokens], { range: [0, 1] }) }, rows)["share"];
    // Four rows of 12 parts: rows are the observations.
    expect(share(0)).toMatchObject({ value: 0, ci95: [...wilson(0, 4)!], range: [0, 1] });
    expect(share(1)).toMatchObject({ value: 1, ci95: [...wilson(4, 4)!] });
    const { some } = summarize(
      { some: ratio((row) => [row.id === "p1" ? 1 : row.tokens, row.tokens], { range: [0, 1] }) },
      rows,
    );
    expect(some!.value).toBe(11 / 12);
    expect(some!.ci95![0]).toBeLessThan(11 / 12);
    expect(some!.ci95![1]).toBe(1);
  });

  it("clips a contrast to the largest possible difference of two values", () => {
    const { contrast } = metricKit<Answer>();
    const of = mean((row) => row.nats, { range: [0, 100] });
    const side = (topic: string, scores: readonly number[]) =>
      scores.map((nats, at) => answer(`${topic}${at}`, null, nats, 1, topic));
    const { sides } = summarize({ sides: contrast(of, (row) => row.topic === "a") }, [
      ...side("a", [100, 90]),
      ...side("b", [0, 10]),
    ]);
    expect(sides).toMatchObject({ value: 90, ci95: [expect.any(Number), 100], range: [-100, 100] });
    // Each side ± 12.706 · 5, the two together by MOVER: what lies on the scale is cut nowhere.
    expect(sides!.ci95![0]).toBeCloseTo(90 - Math.hypot(12.706204736174698 * 5, 12.706204736174698 * 5), 9);
    const { share } = summarize(
      {
        share: contrast(
          rate((row) => row.right),
          (row) => row.topic === "a",
        ),
      },
      rows,
    );
    expect(share!.range).toEqual([-1, 1]);
  });

  it("keeps a value that rounding puts outside of the range, and rejects a value of another scale", () => {
    const of = (nats: number) => summarize({ kl: mean(() => nats, { range: [0, Infinity] }) }, rows)["kl"];
    expect(of(-1e-9)).toMatchObject({ value: -1e-9, ci95: [-1e-9, -1e-9] });
    expect(() => summarize({ points: mean((row) => row.nats, { range: [0, 100] }) }, rows)).toThrow(
      `a mean of row "p1": got -1, expected a number in the metric's range, 0 to 100`,
    );
    expect(() => mean(() => 1, { range: [1, 0] })).toThrow(
      "metricKit.mean options.range: got [1,0], expected the minimum and the maximum",
    );
  });

  it("computes means, ratios and groups", () => {
    const values = summarize(
      {
        log_prob: mean((row) => row.nats, { unit: "nats", by: (row) => row.topic }),
        nats_per_token: ratio((row) => [row.nats, row.tokens]),
      },
      rows,
    );
    // (−1 −3 −2 −6)/4; a: (−1 −3)/2; b: (−2 −6)/2; −12 nats over 12 tokens.
    expect(
      Object.fromEntries(Object.entries(values).map(([name, { value, n }]) => [name, [value, n]])),
    ).toEqual({
      log_prob: [-3, 4],
      "log_prob/a": [-2, 2],
      "log_prob/b": [-4, 2],
      nats_per_token: [-1, 4],
    });
    // Their intervals are t intervals over rows: they speak of questions like these, whatever the clusters.
    expect(values["log_prob"]).toMatchObject({
      unit: "nats",
      higher_is_better: null,
      estimand: "over_questions",
    });
    expect(values["nats_per_token"]).toMatchObject({ estimand: "over_questions" });
  });

  it("transforms a ratio by exp, with its interval and standard error", () => {
    const { plain, exp } = summarize(
      {
        plain: ratio((row) => [-row.nats, row.tokens]),
        exp: ratio((row) => [-row.nats, row.tokens], { transform: "exp", higherIsBetter: false }),
      },
      rows,
    );
    // 12 nats over 12 tokens: e¹; the delta method's factor is its derivative, e¹.
    expect(exp!.value).toBeCloseTo(Math.E, 12);
    expect(exp!.stderr).toBeCloseTo(Math.E * plain!.stderr!, 12);
    expect(exp!.ci95).toEqual(plain!.ci95!.map(Math.exp));
    expect(exp).toMatchObject({ n: 4, higher_is_better: false, estimand: "over_questions" });
  });

  it("returns null when exp overflows", () => {
    const of = (nats: readonly number[]) =>
      summarize(
        { exp: mean((row) => row.nats, { transform: "exp" }) },
        nats.map((one, at) => answer(`${at}`, null, one)),
      )["exp"];
    // e^710 is beyond float64; of 600 and 700 the mean is within, and the interval's end is not.
    expect(of([710])).toMatchObject({ value: null, stderr: null, ci95: null, n: 1 });
    expect(of([600, 700])).toMatchObject({ value: Math.exp(650), ci95: null });
    expect(of([1])).toMatchObject({ value: Math.E, stderr: null, ci95: null });
  });

  it("rejects exp of a rate, of a sampled metric and of a contrast", () => {
    const exp = { transform: "exp" } as const;
    expect(() => rate((row) => row.right, exp)).toThrow("metric options.transform: got a rate");
    expect(() => mean((row) => row.nats, { ...exp, sampled: true })).toThrow("got a sampled mean");
    const perplexity = mean((row) => row.nats, exp);
    expect(() => contrast(perplexity, () => true)).toThrow("got a contrast");
  });

  it("puts a row into several groups, or into none", () => {
    const groups: Record<string, readonly string[]> = { p1: ["a", "b", "a"], q1: ["b"] };
    const values = summarize(
      { log_prob: mean((row) => row.nats, { by: (row) => groups[row.id] ?? [] }) },
      rows,
    );
    // p1 −1 and q1 −2; a group counts a row once.
    expect(
      Object.fromEntries(Object.entries(values).map(([name, { value, n }]) => [name, [value, n]])),
    ).toEqual({ log_prob: [-3, 4], "log_prob/a": [-1, 1], "log_prob/b": [-1.5, 2] });
  });

  it("uses questions as units when rows share them, and counts rows in n", () => {
    const { log_prob: value } = summarize(
      { log_prob: mean((row) => row.nats, { cluster: (row) => row.question }) },
      rows,
    );
    // Question means −2 and −4: standard error √2/√2 = 1, two units.
    expect(value).toMatchObject({
      value: -3,
      n: 4,
      stderr: expect.closeTo(1, 12),
      estimand: "over_questions",
    });
  });

  it("gives a rate with clusters the interval over questions", () => {
    const { right } = summarize(
      { right: rate((row) => row.right, { cluster: (row) => row.question }) },
      rows,
    );
    // 2 of 3 answers (q2 has no score), in questions of 2 and 1.
    expect(right).toMatchObject({ value: 2 / 3, n: 3, estimand: "over_questions" });
    const sizes = [
      { value: 1, weight: 2 },
      { value: 1, weight: 1 },
    ];
    expect(right!.ci95).toEqual(clusteredShareEstimate(sizes).ci95);
  });

  it("contrasts two sides, with an interval from theirs", () => {
    const { contrast } = metricKit<Answer>();
    const of = rate((row) => row.right, { primary: true });
    const { sides } = summarize({ sides: contrast(of, (row) => row.topic === "a") }, rows);
    // 1/2 of a − 1/1 of b (q2 has no score): Wilson limits by MOVER.
    expect(sides).toMatchObject({ value: -0.5, n: 3, unit: "share", estimand: "given_questions" });
    expect(sides!.ci95).toEqual(moverDifference(shareEstimate(1, 2), shareEstimate(1, 1))!.ci95);
    // √(1/4 / 2 + 0)
    expect(sides!.stderr).toBeCloseTo(Math.sqrt(1 / 8), 12);
    const none = summarize({ none: contrast(of, () => null), one: contrast(of, () => true) }, rows);
    expect(none["none"]).toMatchObject({ value: null, n: 0, ci95: null, stderr: null });
    expect(none["one"]).toMatchObject({ value: null, n: 3, ci95: null, stderr: null });
  });

  it("leaves a row without a group out of the groups, but not out of the total", () => {
    const by = (row: Answer) => (row.topic === "a" ? row.topic : null);
    const values = summarize({ log_prob: mean((row) => row.nats, { by }) }, rows);
    expect(Object.entries(values).map(([name, { n }]) => [name, n])).toEqual([
      ["log_prob", 4],
      ["log_prob/a", 2],
    ]);
  });

  it("returns null when there are no rows", () => {
    const values = summarize(
      { a: rate((row) => row.right), b: mean(() => null), c: ratio(() => null) },
      rows.slice(3),
    );
    for (const value of Object.values(values))
      expect(value).toMatchObject({ value: null, n: 0, stderr: null, ci95: null });
  });

  it("rejects values that are not finite, naming the row", () => {
    expect(() => summarize({ b: mean((row) => row.nats / 0) }, rows)).toThrow(
      /a mean of row "p1": got -Infinity/,
    );
    expect(() => summarize({ c: ratio(() => [Number.NaN, 1]) }, rows)).toThrow(/got NaN \/ 1/);
  });
});

describe("rate and contrast", () => {
  it.each([1, 0, "yes", undefined, Promise.resolve(true)])("reject %s, naming the row", (hit) => {
    expect(() => summarize({ a: rate(() => hit as unknown as boolean) }, rows)).toThrow(
      expect.objectContaining({ code: "data", where: `a rate of row "${rows[0]!.id}"` }),
    );
    const side = metricKit<Answer>().contrast(
      mean((row) => row.nats),
      () => hit as unknown as boolean,
    );
    expect(() => summarize({ side }, rows)).toThrow(
      expect.objectContaining({ code: "data", where: `a contrast of row "${rows[0]!.id}"` }),
    );
  });
});

describe("names of groups, clusters and items", () => {
  it.each(["by", "cluster", "item"])("are refused from `%s` unless they are names", (option) => {
    const values = option === "by" ? [] : [undefined, null];
    for (const name of [...values, {}, NaN, [["a"]], Promise.resolve("a")])
      expect(() => {
        const { metric } = { metric: rate(() => true, { [option]: () => name }) };
        summarize({ metric }, rows);
        metric.options.item?.(rows[0]!);
      }).toThrow(`${option} of a rate of row "${rows[0]!.id}": got`);
  });

  it.each([
    [true, ["m", "m/true"]],
    [0.5, ["m", "m/0.5"]],
    [
      ["a", 2, false],
      ["m", "m/a", "m/2", "m/false"],
    ],
    [undefined, ["m"]],
    [null, ["m"]],
  ])("may be booleans and numbers, and groups may be missing: %j", (group, names) => {
    const by = () => group as never;
    expect(Object.keys(summarize({ m: rate(() => true, { by }) }, rows))).toEqual(names);
  });
});

describe("primaryMetric", () => {
  it("returns the marked metric, else the first, else null", () => {
    expect(primaryMetric({ a: rate(() => true), b: mean(() => 1, { primary: true }) })).toBe("b");
    expect(primaryMetric({ a: rate(() => true), b: mean(() => 1) })).toBe("a");
    expect(primaryMetric({})).toBeNull();
  });

  it("rejects two primary metrics", () => {
    const marked = rate(() => true, { primary: true });
    expect(() => primaryMetric({ a: marked, b: marked })).toThrow(
      "2 primary metrics (a, b), expected at most one",
    );
  });
});
