import { describe, expect, it } from "vitest";
import { metricKit } from "../evaluations/kit/metric-kit.ts";
import { compareMeasurements, type ComparisonOptions } from "./compare.ts";

interface Answer {
  readonly id: string;
  readonly right: boolean | null;
  readonly nats: number;
}

const { rate, mean, ratio } = metricKit<Answer>();
const answers = (rights: readonly (boolean | null)[], nats = 0): Answer[] =>
  rights.map((right, i) => ({ id: `${i < 10 ? "p" : "q"}${i}`, right, nats: nats + ((i * 7) % 5) / 10 }));
const times = (count: number, right: boolean | null) => Array<boolean | null>(count).fill(right);

const options: ComparisonOptions = { seed: "s", primary: "accuracy", alpha: 0.05 };
const metrics = { accuracy: rate((row) => row.right, { higherIsBetter: true }) };

/** `cells`: correct at both, only now, only then, at neither. */
function measurements(both: number, onlyNow: number, onlyThen: number, neither: number) {
  const now = [
    ...times(both, true),
    ...times(onlyNow, true),
    ...times(onlyThen, false),
    ...times(neither, false),
  ];
  const then = [
    ...times(both, true),
    ...times(onlyNow, false),
    ...times(onlyThen, true),
    ...times(neither, false),
  ];
  return { now: answers(now), earlier: { rows: answers(then), phase: "em", step: 0 } };
}

describe("compareMeasurements, deterministic rates", () => {
  it("uses McNemar's test and Newcombe's interval over the pairs", () => {
    const { now, earlier } = measurements(1, 1, 7, 12);
    const result = compareMeasurements(metrics, now, earlier, options)["accuracy"]!;
    // The example of DESIGN.md: cells 1, 1, 7, 12 give −.286 [−.507, −.026]; 2·(C(8,0) + C(8,1))/2⁸ = 18/256.
    expect(result).toMatchObject({
      phase: "em",
      step: 0,
      n_pairs: 21,
      delta: expect.closeTo(-6 / 21, 12),
      ci95: [expect.closeTo(-0.507, 3), expect.closeTo(-0.026, 3)],
      test: "mcnemar_exact",
      p_value: 18 / 256,
      alpha: 0.05,
      verdict: "no evidence",
      exploratory: false,
    });
    expect(result.minimal_detectable_change).toBeGreaterThan(6 / 21);
  });

  it("judges by the level of the comparison", () => {
    // 8 of 8 in one direction: p = 2/256 = 0.0078.
    const { now, earlier } = measurements(5, 0, 8, 5);
    const verdictAt = (alpha: number) =>
      compareMeasurements(metrics, now, earlier, { ...options, alpha })["accuracy"]!.verdict;
    expect([verdictAt(0.01), verdictAt(0.005), verdictAt(0)]).toEqual([
      "worse",
      "no evidence",
      "no evidence",
    ]);
  });

  it("has a verdict for each direction", () => {
    const { now, earlier } = measurements(5, 8, 0, 5);
    const verdicts = [true, false, undefined].map((higherIsBetter) => {
      const metric = rate((row) => row.right, higherIsBetter === undefined ? {} : { higherIsBetter });
      return compareMeasurements({ accuracy: metric }, now, earlier, options)["accuracy"]!.verdict;
    });
    expect(verdicts).toEqual(["better", "worse", "changed"]);
  });

  it("pairs only items that both measurements observed", () => {
    const now = answers([true, true, null, false]);
    const earlier = { rows: answers([true, null, true, true, true]), phase: "em", step: 3 };
    expect(compareMeasurements(metrics, now, earlier, options)["accuracy"]).toMatchObject({
      n_pairs: 2,
      delta: -0.5,
    });
  });

  it("returns null everywhere when no item pairs", () => {
    const earlier = { rows: answers([null, null]), phase: "em", step: 3 };
    expect(compareMeasurements(metrics, answers([true, true]), earlier, options)["accuracy"]).toMatchObject({
      n_pairs: 0,
      delta: null,
      ci95: null,
      test: null,
      p_value: null,
      minimal_detectable_change: null,
      verdict: null,
    });
  });
});

describe("compareMeasurements, the family", () => {
  const { now, earlier } = measurements(5, 0, 8, 5);
  const several = { ...metrics, log_prob: mean((row) => row.nats + (row.right === true ? 1 : 0)) };

  it("spends alpha on the primary metric only; the others are exploratory at 0.05", () => {
    const result = compareMeasurements(several, now, earlier, { ...options, alpha: 0.001 });
    expect(result["accuracy"]).toMatchObject({ alpha: 0.001, exploratory: false, verdict: "no evidence" });
    expect(result["log_prob"]).toMatchObject({
      alpha: null,
      exploratory: true,
      verdict: "changed",
      test: "paired_t",
    });
  });

  it("spends no alpha on a comparison without pairs", () => {
    const others = { ...earlier, rows: earlier.rows.map((row) => ({ ...row, id: `other ${row.id}` })) };
    expect(compareMeasurements(several, now, others, { ...options, alpha: 0.01 })["accuracy"]).toMatchObject({
      n_pairs: 0,
      p_value: null,
      alpha: null,
      exploratory: false,
      verdict: null,
    });
  });

  it("marks all metrics exploratory without alpha", () => {
    const result = compareMeasurements(several, now, earlier, { ...options, alpha: null });
    expect(Object.values(result).map((one) => one.exploratory)).toEqual([true, true]);
    expect(result["accuracy"]!.verdict).toBe("worse");
  });

  it("shares alpha among all metrics by Holm's method with familywise: all", () => {
    const result = compareMeasurements(several, now, earlier, { ...options, alpha: 0.05, familywise: "all" });
    expect(
      Object.values(result)
        .map((one) => one.alpha)
        .toSorted((a, b) => a! - b!),
    ).toEqual([0.025, 0.05]);
    expect(Object.values(result).every((one) => !one.exploratory)).toBe(true);
  });
});

describe("compareMeasurements, other kinds", () => {
  it("compares means by a paired t test over rows", () => {
    const now = answers(times(12, true)).map((row, i) => ({ ...row, nats: row.nats + 1 + i / 10 }));
    const earlier = { rows: answers(times(12, true)), phase: "em", step: 0 };
    const result = compareMeasurements({ nats: mean((row) => row.nats) }, now, earlier, {
      ...options,
      primary: "nats",
    })["nats"];
    // Differences 1, 1.1, … 2.1: mean 1.55.
    expect(result).toMatchObject({
      test: "paired_t",
      n_pairs: 12,
      delta: expect.closeTo(1.55, 12),
      verdict: "changed",
    });
  });

  it("compares ratios by the difference of Σ/Σ between the two measurements", () => {
    const now = answers(times(4, true), 1);
    const earlier = { rows: answers(times(4, true), 0), phase: "em", step: 0 };
    const result = compareMeasurements({ r: ratio((row) => [row.nats, 2]) }, now, earlier, options)["r"];
    expect(result).toMatchObject({ test: "paired_t", delta: expect.closeTo(0.5, 12) });
  });

  it("tests perplexities by the t of their nats and reports them as perplexities", () => {
    const times4 = times(4, true);
    const [now, then] = [answers(times4, 1), answers(times4, 0.5)];
    now[0] = { ...now[0]!, nats: 1.1 };
    const earlier = { rows: then, phase: "em", step: 0 };
    const of = (transform: { readonly transform?: "exp" }) =>
      compareMeasurements(
        { m: mean((row) => row.nats, { higherIsBetter: false, ...transform }) },
        now,
        earlier,
        options,
      )["m"]!;
    const [nats, exp] = [of({}), of({ transform: "exp" })];
    // Nats: then .5, .7, .9, .6, mean .675; now 1.1, 1.2, 1.4, 1.1, mean 1.2.
    expect(exp.delta).toBeCloseTo(Math.exp(1.2) - Math.exp(0.675), 12);
    expect(exp.ci95![0]).toBeCloseTo(Math.exp(0.675) * (Math.exp(nats.ci95![0]) - 1), 12);
    expect(exp.ci95![1]).toBeCloseTo(Math.exp(0.675) * (Math.exp(nats.ci95![1]) - 1), 12);
    expect(exp.minimal_detectable_change).toBeCloseTo(
      Math.exp(0.675) * (Math.exp(nats.minimal_detectable_change!) - 1),
      12,
    );
    expect([exp.p_value, exp.verdict, exp.n_pairs]).toEqual([nats.p_value, "worse", 4]);
    const none = compareMeasurements(
      { m: mean((row: Answer) => row.nats, { transform: "exp" }) },
      now,
      { ...earlier, rows: [] },
      options,
    )["m"];
    expect(none).toMatchObject({ n_pairs: 0, delta: null, ci95: null, minimal_detectable_change: null });
  });

  it("compares deterministic rates of clustered rows by t over questions, and counts row pairs", () => {
    const { now, earlier } = measurements(5, 0, 8, 5);
    const clustered = { accuracy: rate((row: Answer) => row.right, { cluster: (row) => row.id[0]! }) };
    expect(compareMeasurements(clustered, now, earlier, options)["accuracy"]).toMatchObject({
      test: "paired_t",
      n_pairs: 18,
    });
  });

  it("compares deterministic rates with one row per cluster by McNemar", () => {
    const { now, earlier } = measurements(1, 1, 7, 12);
    const clustered = { accuracy: rate((row: Answer) => row.right, { cluster: (row) => row.id }) };
    const { verdict: _, ...plain } = compareMeasurements(metrics, now, earlier, options)["accuracy"]!;
    expect(compareMeasurements(clustered, now, earlier, options)["accuracy"]).toMatchObject(plain);
  });

  it("clips intervals to the largest difference of shares", () => {
    const cluster = (row: Answer) => row.id.slice(0, 2);
    const rowsOf = (rights: readonly boolean[]) =>
      rights.map((right, i) => ({ id: `${i < 2 ? "c0" : "c1"}/${i}`, right, nats: 0 }));
    const earlier = { rows: rowsOf([false, false, true, false]), phase: "em", step: 0 };
    const now = rowsOf([true, true, true, false]);
    const result = compareMeasurements(
      { accuracy: rate((row: Answer) => row.right, { cluster }) },
      now,
      earlier,
      options,
    );
    // Questions changed by 1 and 0: 1/2 ± 12.7 · 1/2.
    expect(result["accuracy"]).toMatchObject({ delta: 0.5, ci95: [-1, 1] });
  });

  it("clips intervals to the largest difference of a range, and reports no detectable change beyond it", () => {
    const range = [0, 100] as const;
    const sampled = { sampled: true, item: (row: Answer) => row.id[0]! };
    const of = (given: object) => mean((row: Answer) => row.nats, given);
    const several = {
      open: of(sampled),
      sampled: of({ ...sampled, range }),
      paired: of({ range }),
      sides: metricKit<Answer>().contrast(of({ range }), (row) => row.right),
    };
    const rowsOf = (scores: readonly number[]) =>
      scores.map((nats, i) => ({ id: `${i % 2}#${i}`, right: i < 2, nats }));
    const resultsOf = (now: readonly number[], then: readonly number[]) =>
      compareMeasurements(several, rowsOf(now), { rows: rowsOf(then), phase: "em", step: 0 }, options);

    const alike = resultsOf([1, 9, 2, 12], [100, 90, 98, 100]);
    const { ci95, minimal_detectable_change: detectable } = alike["open"]!;
    expect([ci95![0] < -100, detectable! > 100]).toEqual([true, true]);
    const cut = { ci95: [-100, ci95![1]], minimal_detectable_change: null };
    expect(alike["sampled"]).toEqual({ ...alike["open"], ...cut });

    // Changes −99, −10 and −8, −95 of two rows per side: t with three degrees of freedom, Welch's with about two.
    const apart = resultsOf([1, 40, 2, 5], [100, 50, 10, 100]);
    expect(apart["paired"]).toMatchObject({ delta: -53, ci95: [-100, expect.any(Number)] });
    expect(apart["sides"]).toMatchObject({ delta: -3, ci95: [-200, 200] });
  });

  it("compares each group separately, as exploratory", () => {
    const { now, earlier } = measurements(10, 0, 8, 0);
    const grouped = { accuracy: rate((row: Answer) => row.right, { by: (row) => row.id[0]! }) };
    const result = compareMeasurements(grouped, now, earlier, options);
    // Ids 0–9 are group p and all stay correct; ids 10–17 are group q and all become wrong.
    expect(result["accuracy/p"]).toMatchObject({
      n_pairs: 10,
      delta: 0,
      exploratory: true,
      verdict: "no evidence",
    });
    expect(result["accuracy/q"]).toMatchObject({
      n_pairs: 8,
      delta: -1,
      exploratory: true,
      verdict: "changed",
    });
    expect(result["accuracy"]).toMatchObject({ n_pairs: 18, exploratory: false });
  });
});

describe("compareMeasurements, sampled metrics", () => {
  const completions = (rights: readonly boolean[], question: string) =>
    rights.map((right, i) => ({ id: `${question}#${i}`, right, nats: right ? 1 : 0 }));
  const item = (row: Answer) => row.id.split("#")[0]!;
  const cluster = item;
  const now = [
    ...completions([true, true, true, true, true], "p"),
    ...completions([true, true, true, true], "q"),
  ];
  const before = [...completions([false, false, false, false], "p"), ...completions([false, true], "q")];
  const earlier = { rows: [...before, ...completions([true], "gone")], phase: "em", step: 0 };

  it("permutes within the items that both measurements sampled", () => {
    const sampled = {
      aligned: rate((row: Answer) => row.right, { sampled: true, item, cluster, higherIsBetter: true }),
    };
    const result = compareMeasurements(sampled, now, earlier, { ...options, primary: "aligned" })["aligned"]!;
    // Only the observed arrangement is as extreme: of p's C(9,4) = 126 arrangements the 1 with its four misses before, of q's
    // C(6,2) = 15 the 5 with its miss before: 5/1890. In the other direction p alone cannot reach it.
    expect(result).toMatchObject({ test: "permutation", n_pairs: 2, verdict: "better", exploratory: false });
    expect(result.p_value).toBeCloseTo(5 / 1890, 12);
    // Differences 1 and 1/2 weighted 20/9 and 8/6.
    expect(result.delta).toBeCloseTo((20 / 9 + 8 / 12) / (20 / 9 + 8 / 6), 12);
    expect(result.minimal_detectable_change).toBeGreaterThan(0);
  });

  it("leaves out wordings that only one measurement sampled, even if both sampled their question", () => {
    const sampled = {
      aligned: rate((row: Answer) => row.right, { sampled: true, item, cluster: (row) => row.id[0]! }),
      nats: ratio((row: Answer) => [row.nats, 1], { sampled: true, item, cluster: (row) => row.id[0]! }),
    };
    const same = [...completions([true, false], "p/0"), ...completions([false, false], "q/0")];
    const cut = { rows: same, phase: "em", step: 0 };
    const full = [...same, ...completions([true, true, true], "p/1")];
    const result = compareMeasurements(sampled, full, cut, { ...options, primary: "aligned" });
    expect(result["aligned"]).toMatchObject({ n_pairs: 2, delta: 0, p_value: expect.closeTo(1, 12) });
    expect(result["nats"]).toMatchObject({ n_pairs: 2, delta: 0, p_value: 1 });
  });

  it("compares sampled ratios by t over questions", () => {
    const sampled = { r: ratio((row: Answer) => [row.nats, 1], { sampled: true, item, cluster }) };
    // 9/9 now against 1/6 then, over the questions of both.
    expect(compareMeasurements(sampled, now, earlier, options)["r"]).toMatchObject({
      test: "paired_t",
      n_pairs: 2,
      delta: expect.closeTo(1 - 1 / 6, 12),
    });
  });
});

describe("compareLooks: contrasts", () => {
  it("compares the changes of two independent sides by Welch's t", () => {
    const margin = metricKit<Answer>().contrast(
      mean((row) => row.nats),
      (row) => row.right,
    );
    const rowsOf = (firsts: readonly number[], seconds: readonly number[]): Answer[] => [
      ...firsts.map((nats, i) => ({ id: `first${i}`, right: true, nats })),
      ...seconds.map((nats, i) => ({ id: `second${i}`, right: false, nats })),
    ];
    const now = [...rowsOf([3, 5, 4], [1, 2]), { id: "neither", right: null, nats: 99 }];
    const earlier = { rows: rowsOf([1, 1, 1], [1, 0]), phase: "em", step: 0 };
    // Changes 2, 4, 3 (mean 3, error 1/√3) and 0, 2 (mean 1, error 1): 3 − 1 = 2 ± √(4/3);
    // Satterthwaite (4/3)² / ((1/3)²/2 + 1²/1) = (16/9) / (19/18) = 32/19.
    const result = compareMeasurements({ margin }, now, earlier, { ...options, primary: "margin" })[
      "margin"
    ]!;
    expect(result).toMatchObject({ n_pairs: 5, delta: expect.closeTo(2, 12), test: "paired_t" });
    // scipy 1.17.1: 2 * stats.t.sf(2 / (4 / 3) ** 0.5, 32 / 19)
    expect(result.p_value).toBeCloseTo(0.24818853808401212, 10);
  });

  it("compares sampled rates over their questions", () => {
    const item = (row: Answer) => row.id.slice(0, 2);
    const { contrast } = metricKit<Answer>();
    const leak = contrast(
      rate((row) => row.right, { sampled: true, item }),
      (row) => row.id.startsWith("s"),
    );
    const rowsOf = (rights: Readonly<Record<string, readonly boolean[]>>): Answer[] =>
      Object.entries(rights).flatMap(([question, all]) =>
        all.map((right, i) => ({ id: `${question}#${i}`, right, nats: 0 })),
      );
    const now = rowsOf({ s1: [true, true], s2: [true, false], o1: [true, false], o2: [false, false] });
    const then = rowsOf({ s1: [false, false], s2: [false, false], o1: [false, false], o2: [false, false] });
    // 3/4 − 0 for the source, 1/4 − 0 for the others; four questions.
    const result = compareMeasurements({ leak }, now, { rows: then, phase: "em", step: 0 }, options)["leak"]!;
    expect(result).toMatchObject({ n_pairs: 4, delta: expect.closeTo(0.5, 12), test: "paired_t" });
  });
});
