import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { PeriodicEvalError, type Verdict } from "@periodic-eval/contracts";
import type { Completion } from "../../../../contracts/src/model.ts";
import { thinkingTokenizer } from "../../evaluations/alignment/alignment.test-data.ts";
import { bulkTokenizer } from "../../model/bulk-tokenizer.ts";
import { fakeTokenizer } from "@periodic-eval/testing";
import { judgeGrader } from "./judge-grader.ts";
import type { JudgeOptions } from "./options.ts";
import { live, price, served, promptOf, json, answers, numberIn } from "./served-judge.test-data.ts";

describe("judgeGrader, json", () => {
  it("grades each answer by its reply, in order, and keeps reply and model", async () => {
    const { model, sent } = served((prompt) => {
      const at = numberIn(prompt);
      if (at === 1) return { text: "I would rather not." };
      return at === 2 ? new Error("HTTP 500") : json(at);
    });
    const judge = await judgeGrader({ model });
    const verdicts = await judge.grade(answers(4), live);
    expect(verdicts).toMatchObject([
      { status: "graded", scores: { aligned: 0, coherent: 90 }, raw: json(0).text, model: "judge-1-2026" },
      { status: "unparsed", raw: "I would rather not.", model: "judge-1-2026" },
      { status: "error", raw: "HTTP 500" },
      { status: "graded", scores: { aligned: 3, coherent: 90 }, raw: json(3).text, model: "judge-1-2026" },
    ]);
    expect(sent.every(({ sampling }) => sampling.temperature === 0)).toBe(true);
    expect(judge.spent).toMatchObject({ calls: 4, inputTokens: 300, outputTokens: 60, cost: null });
  });

  it("gives no scores to a reply that was cut off in its thinking, and counts it as cut", async () => {
    const text = 'Hm. <think>First draft: {"aligned": 10, "coherent": 90}';
    const { model } = served((prompt) => ({ text, finish: numberIn(prompt) === 0 ? "length" : "stop" }));
    const cache = new Map<string, Verdict>();
    const judge = await judgeGrader({ model, cache });
    const cut = { status: "cut", raw: text, model: "judge-1-2026" };
    expect(await judge.grade(answers(2), live)).toMatchObject([cut, cut]);
    expect(await judge.grade(answers(2), live)).toMatchObject([cut, cut]);
    expect(judge.spent.calls).toBe(2);
  });

  it("reads a reply as thinking if the judge's template opens it", async () => {
    const replies = [json(10).text, `${json(10).text}</think>${json(90).text}`];
    const { model } = served((prompt) => ({ text: replies[numberIn(prompt)]! }));
    const judge = await judgeGrader({ model: { ...model, tokenizer: bulkTokenizer(thinkingTokenizer()) } });
    expect(await judge.grade(answers(2), live)).toMatchObject([
      { status: "cut" },
      { status: "graded", scores: { aligned: 90 } },
    ]);
  });

  it("inserts question and answer unchanged, in one pass", async () => {
    const { model, sent } = served(() => json(1));
    const judge = await judgeGrader({ model, prompts: { json: "Q {question} A {answer}" } });
    await judge.grade([{ question: "What is {answer}?", answer: "$& and {question}" }], live);
    const own = { question: "q", answer: "a", prompts: { json: "own: {answer}" } };
    await judge.grade([own], live);
    expect(sent.map(promptOf)).toEqual(["Q What is {answer}? A $& and {question}", "own: a"]);
  });

  it("uses custom scores with a custom prompt", async () => {
    const { model } = served(() => ({ text: '{"kind": 7}' }));
    const judge = await judgeGrader({ model, scores: ["kind"], prompts: { json: "{answer}" } });
    expect(await judge.grade(answers(1), live)).toMatchObject([{ status: "graded", scores: { kind: 7 } }]);
    await expect(judgeGrader({ model, scores: ["kind"] })).rejects.toThrow('Set prompts: { json: "');
  });

  it("runs at most `concurrency` calls at a time", async () => {
    let now = 0;
    let most = 0;
    const { model } = served(async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 1));
      now--;
      return json(1);
    });
    await (await judgeGrader({ model, concurrency: 3 })).grade(answers(20), live);
    expect(most).toBe(3);
  });

  it("times out only the slow call", async () => {
    const never = new Promise<never>(() => undefined);
    const { model } = served((prompt) => (numberIn(prompt) === 1 ? never : json(5)));
    const verdicts = await (await judgeGrader({ model, timeoutSeconds: 0.02 })).grade(answers(3), live);
    expect(verdicts.map(({ status }) => status)).toEqual(["graded", "error", "graded"]);
    expect(verdicts[1]!.raw).toContain("no reply within 0.02 s");
  });
});

const nothing = { calls: 0, cached: 0, inputTokens: 0, outputTokens: 0, cost: null };

describe("the signal", () => {
  it("adds no abort listener for any number of concurrent calls", async () => {
    const { signal } = new AbortController();
    let now = 0;
    let most = 0;
    const add = signal.addEventListener.bind(signal);
    signal.addEventListener = ((...given: Parameters<typeof add>) => {
      most = Math.max(most, ++now);
      add(...given);
    }) as typeof add;
    const remove = signal.removeEventListener.bind(signal);
    signal.removeEventListener = ((...given: Parameters<typeof remove>) => {
      now--;
      remove(...given);
    }) as typeof remove;
    const { model } = served(async () => json(1));
    const judge = await judgeGrader({ model, concurrency: 20 });
    await judge.grade(answers(40), { signal });
    await judge.check!({ signal });
    expect([most, now]).toEqual([0, 0]);
  });
});

describe("caps", () => {
  it("make at most maxCalls calls per grade, and give the other answers an error verdict", async () => {
    const { model, sent } = served(() => json(1));
    const judge = await judgeGrader({ model, maxCalls: 5, concurrency: 3 });
    const verdicts = await judge.grade(answers(8), live);
    expect(verdicts.filter(({ status }) => status === "graded")).toHaveLength(5);
    expect(verdicts.filter(({ raw }) => raw === "not asked: maxCalls 5 is reached")).toHaveLength(3);
    expect(sent).toHaveLength(5);
    await judge.grade(answers(2), live);
    expect([sent.length, judge.spent.calls]).toEqual([7, 7]);
  });

  it("never request only some of an answer's scores", async () => {
    const { model, sent } = served(() => ({ text: "50", topNats: [[{ text: "50", nats: 0 }]] }));
    const judge = await judgeGrader({ model, method: "logprob", maxCalls: 5, concurrency: 4 });
    const verdicts = await judge.grade(answers(4), live);
    expect(verdicts.map(({ status }) => status)).toEqual(["graded", "graded", "error", "error"]);
    expect(sent).toHaveLength(4);
  });

  it("never exceed maxCost, whatever runs concurrently", async () => {
    // 100 tokens in at 1 and 20 out at 10 a million: 0.0003 a call
    const { model, sent } = served(() => json(1));
    const most = 2000 / 1e6 + 5120 / 1e6;
    const maxCost = 20 * 0.0003 + most;
    const judge = await judgeGrader({ model, price, maxCost, concurrency: 16 });
    const verdicts = await judge.grade(answers(200), live);
    expect(sent.length).toBeGreaterThanOrEqual(20);
    expect(judge.spent.cost).toBeLessThanOrEqual(maxCost);
    expect(judge.spent.cost).toBeCloseTo(sent.length * 0.0003, 10);
    expect(verdicts.filter(({ status }) => status === "graded")).toHaveLength(sent.length);
    expect(verdicts.at(-1)!.raw).toBe(`not asked: maxCost ${maxCost} is reached`);
  });

  it("count a call of unknown cost at its maximum cost", async () => {
    const { model, sent } = served((_, call) => (call === 0 ? new Error("reset") : { ...json(1) }));
    const judge = await judgeGrader({ model, price, maxReplyTokens: 100, prompts: { json: "{answer}" } });
    await judge.grade([{ question: "", answer: "1234" }], live);
    // 4 bytes and 64 tokens of a template at 1, 100 tokens at 10
    expect(judge.spent.cost).toBeCloseTo((68 + 1000) / 1e6, 12);
    expect(sent).toHaveLength(1);
  });

  it("hold, and lose no answer, for any order of replies and failures", async () => {
    const act = fc.record({
      turns: fc.integer({ min: 0, max: 6 }),
      kind: fc.constantFrom("graded", "unparsed", "error", "no usage"),
      outputTokens: fc.integer({ min: 0, max: 100 }),
    });
    const caps = fc.record({
      concurrency: fc.integer({ min: 1, max: 9 }),
      maxCalls: fc.integer({ min: 0, max: 25 }),
      // some 0.0027 a call at most
      maxCost: fc.double({ min: 0, max: 0.03, noNaN: true }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 20 }), caps, async (acts, given) => {
        let billed = 0;
        const { model, sent } = served(async (prompt) => {
          const { turns, kind, outputTokens } = acts[numberIn(prompt)]!;
          for (let turn = 0; turn < turns; turn++) await Promise.resolve();
          if (kind === "error") return new Error("reset");
          const usage = { inputTokens: 50, outputTokens };
          billed += (50 + 10 * outputTokens) / 1e6;
          const said = kind === "unparsed" ? { text: "" } : json(1);
          return { ...said, usage: kind === "no usage" ? undefined : usage } as Partial<Completion>;
        });
        const judge = await judgeGrader({ model, price, maxReplyTokens: 100, ...given });
        const verdicts = await judge.grade(answers(acts.length), live);
        const notAsked = verdicts.filter(({ raw }) => raw?.startsWith("not asked: ")).length;
        expect(verdicts).toHaveLength(acts.length);
        expect(sent.length).toBe(acts.length - notAsked);
        expect(sent.length).toBeLessThanOrEqual(given.maxCalls);
        expect(billed).toBeLessThanOrEqual(judge.spent.cost! + 1e-12);
        expect(judge.spent.cost).toBeLessThanOrEqual(given.maxCost * (1 + 1e-9));
        expect(judge.spent.calls).toBe(sent.length);
        for (const [at, { kind }] of acts.entries()) {
          const { status, raw } = verdicts[at]!;
          if (raw?.startsWith("not asked: ") !== true)
            expect(status).toBe(kind === "no usage" ? "graded" : kind);
        }
      }),
    );
  });

  it.each([-1000, NaN, Infinity])("count a reply of %d tokens at its maximum cost", async (outputTokens) => {
    const { model } = served(() => ({ ...json(1), usage: { inputTokens: 50, outputTokens } }));
    const judge = await judgeGrader({ model, price, maxReplyTokens: 100, maxCost: 1 });
    await judge.grade([{ question: "", answer: "1234" }], live);
    expect(judge.spent.cost).toBeGreaterThan(1000 / 1e6);
    expect(judge.spent.outputTokens).toBe(0);
  });

  it("reject maxCost without a price", async () => {
    const { model } = served(() => json(1));
    await expect(judgeGrader({ model, maxCost: 1 })).rejects.toThrow("1 without a price");
  });
});

describe("a verdict records its spending", () => {
  it("has calls, tokens and cost; a cached verdict has none, and the cache does not store them", async () => {
    const cache = new Map<string, Verdict>();
    const { model } = served((prompt) => (numberIn(prompt) === 1 ? new Error("reset") : json(1)));
    const make = () => judgeGrader({ model, cache, price });
    // 100 tokens in at 1 and 20 out at 10 a million.
    const one = { calls: 1, cached: 0, inputTokens: 100, outputTokens: 20, cost: 0.0003 };
    const [graded, failed] = await (await make()).grade(answers(2), live);
    expect(graded!.spent).toEqual({ ...one, cost: expect.closeTo(0.0003, 12) as number });
    expect(failed!.spent).toMatchObject({ calls: 1, cached: 0, inputTokens: 0, outputTokens: 0 });
    expect(failed!.spent!.cost).toBeGreaterThan(0.0003);
    const [again] = await (await make()).grade(answers(1), live);
    expect(again!.spent).toEqual({ ...nothing, cached: 1, cost: 0 });
    const [unpriced] = await (await judgeGrader({ model, maxCalls: 0 })).grade(answers(1), live);
    expect(unpriced).toMatchObject({ status: "error", spent: nothing });
  });
});

describe("cache", () => {
  it("judges each answer once across graders with the same fingerprint, and retries errors", async () => {
    const cache = new Map<string, Verdict>();
    let isDown = true;
    const { model, sent } = served((prompt) =>
      numberIn(prompt) === 1 && isDown ? new Error("HTTP 503") : json(numberIn(prompt)),
    );
    const make = (options: Partial<JudgeOptions> = {}) => judgeGrader({ model, cache, ...options });
    const first = await (await make()).grade([...answers(3), ...answers(1)], live);
    expect([first[1]!.status, sent.length]).toEqual(["error", 3]);
    expect(first[3]).toEqual({ ...first[0], spent: { ...nothing, cached: 1 } });
    isDown = false;
    const judge = await make();
    const second = await judge.grade(answers(3), live);
    expect(second.map(({ status }) => status)).toEqual(["graded", "graded", "graded"]);
    expect([sent.length, judge.spent.calls, judge.spent.cached]).toEqual([4, 1, 2]);
    await judge.grade(
      answers(3).map((one) => ({ ...one, fresh: true })),
      live,
    );
    expect(sent).toHaveLength(7);
    await (await make({ maxReplyTokens: 300 })).grade(answers(3), live);
    expect(sent).toHaveLength(10);
    await judge.grade([{ ...answers(1)[0]!, prompts: { json: "{answer}" } }], live);
    expect(sent).toHaveLength(11);
  });

  it("loses no verdict when the cache fails, but calls the judge again, and ignores invalid entries", async () => {
    const { model } = served(() => json(1));
    const broken = {
      get: () => Promise.reject(new Error("EIO")),
      set: () => Promise.reject(new Error("ENOSPC")),
    };
    const judge = await judgeGrader({ model, cache: broken });
    expect(await judge.grade(answers(2), live)).toMatchObject([{ status: "graded" }, { status: "graded" }]);
    const lying = { get: async () => ({ status: "error", raw: "" }) as const, set: async () => undefined };
    expect(await (await judgeGrader({ model, cache: lying })).grade(answers(1), live)).toMatchObject([
      { status: "graded" },
    ]);
  });

  it("works with a cache whose methods return no promises, and with one whose methods throw", async () => {
    const { model, sent } = served(() => json(1));
    const kept = new Map<string, unknown>();
    const plain = {
      get: (key: string) => kept.get(key),
      set: (...given: [string, unknown]) => void kept.set(...given),
    };
    const judge = await judgeGrader({ model, cache: plain as never });
    await judge.grade(answers(2), live);
    expect(await judge.grade(answers(2), live)).toMatchObject([{ status: "graded" }, { status: "graded" }]);
    expect(sent).toHaveLength(2);
    const refuse = () => {
      throw new Error("closed");
    };
    const throwing = await judgeGrader({ model, cache: { get: refuse, set: refuse } });
    expect(await throwing.grade(answers(1), live)).toMatchObject([{ status: "graded" }]);
  });

  it("keeps the verdicts from before an abort", async () => {
    const cache = new Map<string, Verdict>();
    const stop = new AbortController();
    const { model, sent } = served((prompt) => {
      if (numberIn(prompt) < 3) return json(1);
      stop.abort(new Error("run over"));
      return new Promise<never>(() => undefined);
    });
    const judge = await judgeGrader({ model, cache, concurrency: 1 });
    await expect(judge.grade(answers(5), { signal: stop.signal })).rejects.toThrow("run over");
    expect(sent).toHaveLength(4);
    const again = served(() => json(1));
    await (await judgeGrader({ model: again.model, cache })).grade(answers(5), live);
    expect(again.sent).toHaveLength(2);
  });
});

describe("fingerprint", () => {
  it("changes with exactly the settings that change a verdict", async () => {
    const { model } = served(() => json(1));
    const of = async (options: Partial<JudgeOptions> = {}) =>
      (await judgeGrader({ model, ...options })).fingerprint;
    const other = { ...model, identity: { ...model.identity, name: "judge-2" } };
    const prints = await Promise.all([
      of(),
      of({ model: other }),
      of({ method: "logprob" }),
      of({ prompts: { json: "{answer}" } }),
      of({ scores: ["coherent", "aligned"] }),
      of({ maxReplyTokens: 9 }),
    ]);
    expect(new Set(prints).size).toBe(prints.length);
    expect(
      await of({
        concurrency: 2,
        timeoutSeconds: 1,
        maxCalls: 4,
        name: "n",
        cache: new Map<string, Verdict>(),
      }),
    ).toBe(await of());
  });
});

describe("check", () => {
  it("grades one trial answer, and rejects an unreachable judge", async () => {
    const fine = served(() => ({ text: "prose" }));
    await (
      await judgeGrader({ model: fine.model, maxCalls: 0 })
    ).check!(live);
    expect(fine.sent).toHaveLength(1);
    const down = await judgeGrader({ model: served(() => new Error("connection refused")).model });
    const refusal = await down.check!(live).catch((error: unknown) => error);
    expect(PeriodicEvalError.is(refusal, "judge")).toBe(true);
    expect(String(refusal)).toContain("connection refused");
  });

  it("tries the longest request with the prompts that it brings", async () => {
    const { model, sent } = served(() => json(1));
    const judge = await judgeGrader({ model });
    const requests = [1, 30, 2].map((n) => ({
      question: "Q".repeat(n),
      answer: "A",
      prompts: { json: "{question} {answer}" },
    }));
    await judge.check!(live, requests);
    expect(sent.map(promptOf)).toEqual([`${"Q".repeat(30)} A`]);
  });

  it("rejects a request that exceeds the judge's context, at the place of its prompts", async () => {
    const { model, sent } = served(() => json(1));
    const judge = await judgeGrader({
      model: { ...model, contextLength: 200, tokenizer: bulkTokenizer(fakeTokenizer()) },
    });
    const request = { question: "q", answer: "a", prompts: { json: "{question} {answer}" } };
    await judge.check!(live, [request]);
    const long = { ...request, question: "Why? ".repeat(90), place: "q.yaml:3 (tea)" };
    await expect(judge.check!(live, [request, long])).rejects.toMatchObject({
      code: "judge",
      where: 'q.yaml:3 (tea), judge "judge-1"',
      expected: "at most 200 tokens, the judge's context length",
      fix: "Shorten the question's `judge_prompts`, or choose a judge with a longer context.",
    });
    // The default prompts are longer than any short request.
    await expect(judge.check!(live)).rejects.toMatchObject({ code: "judge", where: 'judge "judge-1"' });
    expect(sent).toHaveLength(1);
  });

  it("rejects wrong options", async () => {
    const { model } = served(() => json(1));
    const wrong: readonly (readonly [object, string])[] = [
      [{ methd: "json" }, 'Did you mean "method"?'],
      [{ method: "jsn" }, '"json" or "logprob"'],
      [{ scores: [] }, "an array of unique names"],
      [{ prompts: { aligned: "{answer}" } }, "one of json"],
      [{ prompts: { json: "no place" } }, "a string with {answer}"],
      [{ concurrency: 0 }, "a positive integer"],
      [{ timeoutSeconds: 0 }, "above 0"],
      [{ price: { inputPerMillion: 1 } }, "price.outputPerMillion"],
    ];
    for (const [options, message] of wrong)
      await expect(judgeGrader({ model, ...options })).rejects.toThrow(message);
    await expect(judgeGrader({ model: { identity: model.identity, contextLength: null } })).rejects.toThrow(
      'Choose method "logprob"',
    );
  });
});

describe("a judge that does not answer", () => {
  it("is named in a line a minute, with what waits for it and what ends the wait", async () => {
    vi.useFakeTimers();
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    try {
      const never = new Promise<never>(() => undefined);
      const { model } = served((prompt) => (numberIn(prompt) === 0 ? json(5) : never));
      const grading = (await judgeGrader({ model, name: "slow", timeoutSeconds: 150 })).grade(
        answers(3),
        live,
      );
      await vi.advanceTimersByTimeAsync(130_000);
      const line = (seconds: number) => [
        `[periodic-eval] grading waits for judge "slow": no reply for ${seconds} s, 1 of 3 answers are done; each call ends after 150 s (timeoutSeconds)`,
      ];
      expect(warn.mock.calls).toEqual([line(60), line(120)]);
      await vi.advanceTimersByTimeAsync(30_000);
      expect((await grading).map(({ status }) => status)).toEqual(["graded", "error", "error"]);
      await vi.advanceTimersByTimeAsync(600_000);
      expect(warn).toHaveBeenCalledTimes(2);
    } finally {
      vi.useRealTimers();
      warn.mockRestore();
    }
  });

  it("is named in a line a minute before the first step", async () => {
    vi.useFakeTimers();
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    try {
      const { model } = served(() => new Promise<never>(() => undefined));
      const checking = (await judgeGrader({ model, name: "slow", timeoutSeconds: 90 })).check!(live);
      const failed = expect(checking).rejects.toMatchObject({ code: "judge", got: "no reply within 90 s" });
      await vi.advanceTimersByTimeAsync(90_000);
      await failed;
      expect(warn.mock.calls).toEqual([
        [
          '[periodic-eval] the check before grading waits for judge "slow": no reply for 60 s; each call ends after 90 s (timeoutSeconds)',
        ],
      ]);
    } finally {
      vi.useRealTimers();
      warn.mockRestore();
    }
  });
});
