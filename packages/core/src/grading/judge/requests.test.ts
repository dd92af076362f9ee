import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EvaluableModel, ModelWith } from "@periodic-eval/contracts";
import { judgeGrader } from "./judge-grader.ts";
import type { JudgeOptions } from "./options.ts";
import { answers, json, live, numberIn, price } from "./served-judge.test-data.ts";

/** How a request ends: with a reply, refused (never billed), lost (billed, for all that is known), broken (and not repeated). */
type End = "replied" | "refused" | "lost" | "broken";

/** A served model whose client retries refused and lost requests. The script lists how the requests of an answer end before the reply. */
function repeating(ends: (answer: number) => readonly { readonly end: End; readonly turns: number }[]) {
  const sent: End[] = [];
  const begun = new Map<number, number>();
  const model: EvaluableModel & ModelWith<"generate"> = {
    identity: { name: "judge-1", engine: "scripted", dtype: "unknown", weights: null, adapter: null },
    contextLength: null,
    async generate([request], { beforeRequest }) {
      const { prompt } = request!;
      const answer = numberIn("messages" in prompt ? prompt.messages[0]!.content : "");
      for (;;) {
        const ended = beforeRequest?.();
        const at = begun.get(answer) ?? 0;
        begun.set(answer, at + 1);
        const { end, turns } = ends(answer)[at] ?? { end: "replied", turns: 0 };
        sent.push(end);
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        ended?.(end !== "refused");
        if (end === "broken") throw new Error("HTTP 500");
        if (end !== "replied") continue;
        const usage = { inputTokens: 50, outputTokens: 10 };
        const topNats = [[{ text: "50", nats: 0 }]];
        return [{ ...json(1), ids: null, tokenNats: null, topNats, finish: "stop", usage }];
      }
    },
  };
  return { model, sent };
}

const always = (...ends: readonly End[]) => repeating(() => ends.map((end) => ({ end, turns: 1 })));
const own = { price, prompts: { json: "{answer}" }, maxReplyTokens: 100 };
/** The prompt `answer <0>`: ten bytes and 64 tokens of a template at 1 a million, 100 tokens at 10. */
const most = (74 + 1000) / 1e6;
const replied = (50 + 100) / 1e6;

describe("retries of a server's client", () => {
  it("count as 0 when they were refused, and at their maximum when they may be billed", async () => {
    const { model } = always("refused", "lost", "refused");
    const [verdict] = await judgeGrader({ model, ...own }).grade(answers(1), live);
    const spent = { calls: 4, cost: expect.closeTo(most + replied, 12) as number, inputTokens: 50 };
    expect(verdict).toMatchObject({ status: "graded", spent });
  });

  it("are not sent when a cap is reached, and the verdict says so", async () => {
    const reasonOf = async (options: Partial<JudgeOptions>, ...ends: readonly End[]) => {
      const { model, sent } = always(...ends);
      const judge = judgeGrader({ model, ...own, ...options });
      const [verdict] = await judge.grade(answers(1), live);
      expect(judge.spent.calls).toBe(sent.length);
      return [sent.length, verdict!.raw];
    };
    const twice = ["lost", "lost"] as const;
    expect(await reasonOf({ maxCalls: 2 }, ...twice)).toEqual([2, "not asked again: maxCalls 2 is reached"]);
    const maxCost = 2.5 * most;
    expect(await reasonOf({ maxCost }, ...twice)).toEqual([
      2,
      `not asked again: maxCost ${maxCost} is reached`,
    ]);
    expect(await reasonOf({ maxCost }, "refused", "refused", "lost")).toEqual([4, json(1).text]);
  });

  it("leave enough budget for the other prompts of the answer", async () => {
    const { model, sent } = always("refused");
    const logprob: JudgeOptions = { model, method: "logprob", maxCalls: 3 };
    expect(await judgeGrader(logprob).grade(answers(1), live)).toMatchObject([{ status: "graded" }]);
    expect(sent).toEqual(["refused", "replied", "replied"]);
    const fewer = await judgeGrader({ ...logprob, model: always("refused").model, maxCalls: 2 }).grade(
      answers(1),
      live,
    );
    expect(fewer).toMatchObject([{ status: "error", raw: "not asked again: maxCalls 2 is reached" }]);
  });

  it("respect the caps, and lose no answer, for any outcome and order", async () => {
    const end = fc.record({
      end: fc.constantFrom<End>("replied", "refused", "lost", "broken"),
      turns: fc.integer({ min: 0, max: 5 }),
    });
    const caps = fc.record({
      concurrency: fc.integer({ min: 1, max: 6 }),
      maxCalls: fc.integer({ min: 0, max: 30 }),
      maxCost: fc.double({ min: 0, max: 30 * most, noNaN: true }),
    });
    const script = fc.array(fc.array(end, { maxLength: 5 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(script, caps, async (acts, given) => {
        const { model, sent } = repeating((answer) => acts[answer]!);
        const judge = judgeGrader({ model, ...own, ...given });
        const verdicts = await judge.grade(answers(acts.length), live);
        const billed = { replied, refused: 0, lost: most, broken: most };
        // Answers from 10 on have a byte more in their prompt.
        const least = sent.reduce((sum, one) => sum + billed[one], 0);
        expect(sent.length).toBeLessThanOrEqual(given.maxCalls);
        expect(judge.spent.calls).toBe(sent.length);
        expect(judge.spent.cost).toBeGreaterThanOrEqual(least - 1e-12);
        expect(judge.spent.cost).toBeLessThanOrEqual(given.maxCost * (1 + 1e-9));
        const graded = verdicts.filter(({ status }) => status === "graded");
        expect(graded).toHaveLength(sent.filter((one) => one === "replied").length);
        for (const { status, raw } of verdicts)
          if (status !== "graded")
            expect(raw).toMatch(/^(HTTP 500|not asked( again)?: max(Calls|Cost) .* is reached)$/);
      }),
    );
  });
});
