import { measure, ruleGrader, type Grader, type Snapshot } from "@periodic-eval/core";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { pairJudge, winRate, type JudgedPair, type WinRateOptions } from "./win-rate.ts";

const prompts = ["win", "loss", "tie", "place"].map((id) => ({ id, prompt: `Say ${id}.` }));
const answers = { win: "c", loss: "c", tie: "c", place: "c" };

/** Answers `a`, which beats the reference's `c`; `z`, which loses; `c`, which ties; or `?`, whose result depends on the order. */
const replies: Readonly<Record<string, string>> = { win: "a", loss: "z", tie: "c", place: "?" };
const model = () => fakeModel({ reply: (prompt) => replies[/Say (\w+)\./.exec(prompt)?.[1] ?? ""] ?? null });

const partsOf = (pair: string): readonly [string, string] => {
  const [, first, second] =
    /\[FIRST ANSWER\]\n(.*)\n\[END OF FIRST ANSWER\]\n\n\[SECOND ANSWER\]\n(.*)\n\[END/s.exec(pair)!;
  return [first!, second!];
};

/** Prefers the lower letter, or the first answer if either is `?`. */
const judge = ruleGrader({
  name: "alphabet",
  rule(_, pair) {
    const [first, second] = partsOf(pair);
    if (first === "?" || second === "?") return { first: 1, second: 0 };
    return { first: -first.charCodeAt(0), second: -second.charCodeAt(0) };
  },
});

const measured = async (options: Partial<WinRateOptions> = {}) => {
  const { snapshot, rows } = await measure(
    winRate({ prompts, reference: { answers }, judge, ...options }),
    model(),
  );
  return { snapshot, rows: rows as readonly JudgedPair[] };
};
const values = ({ metrics }: Snapshot) =>
  Object.fromEntries(Object.entries(metrics).map(([name, { value }]) => [name, value]));

describe("the win rate", () => {
  it("counts a pair as won if both orders agree, and as a tie if they disagree", async () => {
    const { snapshot, rows } = await measured();
    expect(rows.map(({ id, outcome, preferences }) => [id, outcome, ...preferences])).toEqual([
      ["win", "win", "model", "model"],
      ["loss", "loss", "reference", "reference"],
      ["tie", "tie", "tie", "tie"],
      ["place", "tie", "model", "reference"],
    ]);
    // The win rate is (1 + 0 + ½ + ½) / 4. Of 2 + 2 + 0 + 2 decided readings, 1 + 1 + 0 + 2 prefer the first answer.
    expect(values(snapshot)).toEqual({
      win_rate: 0.5,
      tie_rate: 0.5,
      order_disagreement: 0.25,
      first_preferred: 4 / 6,
      ungraded: 0,
    });
    expect(snapshot).toMatchObject({ wins: 1, losses: 1, ties: 2, ungraded: 0, num_prompts: 4 });
    // t with 3 degrees of freedom is 3.182446; s² = (¼ + ¼) / 3, √(s² / 4) = 0.204124
    const { stderr, ci95, n } = snapshot.metrics["win_rate"]!;
    expect(n).toBe(4);
    expect(stderr).toBeCloseTo(0.204124, 6);
    expect(ci95![1]).toBeCloseTo(0.5 + 3.182446 * 0.204124, 5);
    expect(snapshot.primary_metric).toBe("win_rate");
  });

  it("is 0.5 for a judge that sees only the order, and `order_disagreement` is 1", async () => {
    const rule = () => ({ first: 9, second: 1 });
    const { snapshot } = await measured({ judge: ruleGrader({ name: "first", rule }) });
    expect(values(snapshot)).toMatchObject({ win_rate: 0.5, order_disagreement: 1, first_preferred: 1 });
  });

  it("rejects a judge that leaves a verdict out, which would give the others to wrong pairs", async () => {
    const short = {
      ...judge,
      grade: async (...given: Parameters<Grader["grade"]>) => (await judge.grade(...given)).slice(1),
    };
    await expect(measured({ judge: short })).rejects.toThrow("got 7 verdicts, expected 8, one per answer");
  });

  it.each([
    ["NaN", { first: Number.NaN, second: 1 }],
    ["strings", { first: "9", second: "10" }],
  ])("has no preference for scores that are %s", async (_, scores) => {
    const odd = {
      ...judge,
      grade: async (requests: readonly unknown[]) =>
        requests.map(() => ({ status: "graded", scores, raw: null }) as never),
    };
    const { rows } = await measured({ judge: odd, maxErrorShare: 1 });
    expect(rows.every(({ outcome }) => outcome === null)).toBe(true);
  });

  it("becomes 1 − win rate when model and reference are swapped", async () => {
    const other = fakeModel({ reply: () => "c" });
    const one = await measure(winRate({ prompts, reference: other, judge }), model());
    expect(values(one.snapshot)).toEqual(values((await measured()).snapshot));
    const few = prompts.slice(0, 1);
    const there = await measure(winRate({ prompts: few, reference: other, judge }), model());
    const back = await measure(winRate({ prompts: few, reference: model(), judge }), other);
    expect([there, back].map(({ snapshot }) => snapshot.metrics["win_rate"]!.value)).toEqual([1, 0]);
  });

  it("leaves out pairs with a missing verdict, and throws if there are too many", async () => {
    const failing = (share: number): Grader =>
      ruleGrader({
        name: "silent",
        rule: (question, pair) => {
          const [first] = partsOf(pair);
          return question.includes("tie") && first === "c" ? null : { first: 1, second: share };
        },
      });
    const { snapshot, rows } = await measured({ judge: failing(2), maxErrorShare: 0.25 });
    expect(rows[2]).toMatchObject({ preferences: [null, null], outcome: null });
    expect(snapshot.metrics).toMatchObject({ win_rate: { n: 3 }, ungraded: { value: 0.25, n: 4 } });
    await expect(measured({ judge: failing(2) })).rejects.toThrow("1 of 4 pairs without a verdict");
  });

  it("shows a judge model both orders, and uses its scores", async () => {
    const seen: string[] = [];
    const judgeModel = fakeModel({
      reply(prompt) {
        seen.push(prompt);
        const isFirst = /\[FIRST ANSWER\]\na\n/.test(prompt);
        return isFirst ? '{"reasoning": "a", "first": 80, "second": 20}' : '{"first": 10, "second": 90}';
      },
    });
    const few = prompts.slice(0, 1);
    const { snapshot } = await measured({ prompts: few, judge: await pairJudge({ model: judgeModel }) });
    expect(values(snapshot)).toMatchObject({ win_rate: 1, first_preferred: 0.5 });
    expect(seen).toHaveLength(2);
    expect(seen[0]).toContain("[REQUEST]\nSay win.\n[END OF REQUEST]\n\n[FIRST ANSWER]\na\n");
    expect(seen[1]).toContain("[FIRST ANSWER]\nc\n[END OF FIRST ANSWER]\n\n[SECOND ANSWER]\na\n");
  });
});

describe("options", () => {
  it.each<[Partial<WinRateOptions> | object, string]>([
    [{ prompts: [] }, "winRate options.prompts: got []"],
    [
      { reference: { answers: { win: "c" } } },
      'winRate options.reference.answers: got no answer for the prompt "loss"',
    ],
    [{ reference: { identity: fakeModel().identity, contextLength: null } }, "which cannot generate"],
    [
      { prompts: [{ id: "win", prompt: { ids: [1, 2] } as never }] },
      'winRate options.prompts[0].prompt: got {"ids":[1,2]}, expected a string, { text } or { messages }. Write the prompt as text',
    ],
    [{ prompts: ["Hi" as never] }, 'winRate options.prompts[0]: got "Hi", expected an object (id, prompt).'],
    [{ sampling: { maxNewTokens: 0 } }, "winRate options.sampling.maxNewTokens: got 0"],
    [{ sampling: { temperature: -1 } }, "winRate options.sampling.temperature: got -1"],
    [{ sampling: { topp: 1 } }, 'Did you mean "topP"?'],
    [{ judges: judge }, 'Did you mean "judge"?'],
  ])("%o is refused", (given, says) => {
    expect(() => winRate({ prompts, reference: { answers }, judge, ...given })).toThrow(says);
  });
});

describe("conformance", () => {
  const make = () => ({
    evaluation: winRate({ prompts, reference: fakeModel({ weights: () => "then" }), judge: length }),
    model: fakeModel({ weights: () => "now" }),
  });
  const length = ruleGrader({
    name: "length",
    rule: (_, pair) => {
      const [first, second] = partsOf(pair);
      return { first: first.length, second: second.length };
    },
  });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});
