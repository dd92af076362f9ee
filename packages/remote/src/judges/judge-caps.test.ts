import { judgeGrader, type GradeRequest, type JudgeOptions } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { serveInTests, type Act, type Received } from "../models/api-server.test-data.ts";
import { skipWaits } from "../models/skip-waits.test-data.ts";
import { anthropicModel, openAiCompatible, type ServedModelOptions } from "../index.ts";

const live = { signal: new AbortController().signal };
const serve = serveInTests("sk-0123456789");

const answers = (count: number): GradeRequest[] =>
  Array.from({ length: count }, (_, at) => ({
    question: "Why?",
    answer: `<${String(at).padStart(2, "0")}>`,
  }));
const numberIn = (prompt: string) => Number(/<(\d+)>/.exec(prompt)![1]);
const graded = { say: '{"aligned": 1, "coherent": 90}' };
const failed = (status: number): Act => ({ status, headers: { "retry-after-ms": "1" } });

const price = { inputPerMillion: 3, outputPerMillion: 15 };
/** The maximum cost of a prompt of 4 bytes: 4 + 64 (template) input tokens, 100 output tokens. */
const most = (68 * 3 + 100 * 15) / 1e6;

describe.each([
  { name: "openai", open: openAiCompatible, ofGraded: (100 * 3 + 20 * 15) / 1e6 },
  { name: "anthropic", open: anthropicModel, ofGraded: (90 * 3 + 30 * 15) / 1e6 },
])("$name", ({ open, ofGraded }) => {
  const judgeOf = async (
    script: (request: Received, count: number) => Act,
    client: Partial<ServedModelOptions>,
    options: Partial<JudgeOptions> = {},
  ) => {
    const server = await serve(script);
    skipWaits(server.unanswered);
    const model = open({ model: "judge-1", baseUrl: server.url, ...client });
    const plain = { prompts: { json: "{answer}" }, maxReplyTokens: 100, price };
    return { ...server, judge: judgeGrader({ model, ...plain, ...options }) };
  };

  it("counts every request, and books its maximum cost if the server may have generated a token", async () => {
    /** The responses to the first requests for an answer, and how many of these may be billed. The server grades it after them. */
    const cases: readonly { meets: readonly Act[]; requests: number; mayBeBilled: number }[] = [
      { meets: [], requests: 1, mayBeBilled: 0 },
      { meets: [failed(429)], requests: 2, mayBeBilled: 0 },
      { meets: [failed(429), failed(529)], requests: 3, mayBeBilled: 0 },
      { meets: [failed(429), failed(500)], requests: 3, mayBeBilled: 1 },
      { meets: [failed(503), failed(504)], requests: 3, mayBeBilled: 2 },
      { meets: ["reset"], requests: 2, mayBeBilled: 1 },
      { meets: ["stall"], requests: 2, mayBeBilled: 1 },
      { meets: ["stall in the body"], requests: 2, mayBeBilled: 1 },
      { meets: [{ body: "<html>gateway</html>" }], requests: 2, mayBeBilled: 1 },
    ];
    /** The cases that end in an error. */
    const errors: readonly { meets: readonly Act[]; requests: number; mayBeBilled: number }[] = [
      { meets: [429, 429, 429].map(failed), requests: 3, mayBeBilled: 0 },
      { meets: [429, 500, 429].map(failed), requests: 3, mayBeBilled: 1 },
      { meets: [401].map(failed), requests: 1, mayBeBilled: 0 },
      { meets: [404].map(failed), requests: 1, mayBeBilled: 0 },
      // A content filter reads the prompt, and some providers bill that.
      { meets: [400].map(failed), requests: 1, mayBeBilled: 1 },
      { meets: [{ body: "null" }], requests: 1, mayBeBilled: 1 },
    ];
    const all = [...cases, ...errors];
    const seen = new Map<number, number>();
    const { judge, received } = await judgeOf(
      ({ prompt }) => {
        const at = numberIn(prompt);
        const before = seen.get(at) ?? 0;
        seen.set(at, before + 1);
        return all[at]!.meets[before] ?? graded;
      },
      { maxRetries: 2, timeoutSeconds: 3 },
      { concurrency: all.length },
    );
    const verdicts = await judge.grade(answers(all.length), live);
    expect(verdicts.map(({ status, spent }) => [status, spent])).toEqual(
      all.map(({ requests, mayBeBilled }, at) => [
        at < cases.length ? "graded" : "error",
        expect.objectContaining({
          calls: requests,
          cost: expect.closeTo(mayBeBilled * most + (at < cases.length ? ofGraded : 0), 12) as number,
        }),
      ]),
    );
    expect(judge.spent.calls).toBe(received.length);
  });

  it("books nothing for a server that cannot be reached", async () => {
    const { url, close, unanswered } = await serve(() => "reset");
    close();
    skipWaits(unanswered);
    const model = open({ model: "judge-1", baseUrl: url, maxRetries: 1 });
    const judge = judgeGrader({ model, price });
    expect(await judge.grade(answers(1), live)).toMatchObject([
      { status: "error", spent: { calls: 2, cost: 0 } },
    ]);
  });

  it("counts retries against maxCalls", async () => {
    const { judge, received } = await judgeOf(
      () => failed(429),
      { maxRetries: 4 },
      { maxCalls: 7, concurrency: 4 },
    );
    const verdicts = await judge.grade(answers(20), live);
    expect([received.length, judge.spent.calls]).toEqual([7, 7]);
    const reasons = new Set(verdicts.map(({ raw }) => raw));
    expect(reasons).toEqual(
      new Set(["not asked: maxCalls 7 is reached", "not asked again: maxCalls 7 is reached"]),
    );
  });

  it("counts retries that may be billed against maxCost, and no others", async () => {
    const maxCost = 6 * most;
    const dear = await judgeOf(() => failed(500), { maxRetries: 3 }, { maxCost, concurrency: 3 });
    const verdicts = await dear.judge.grade(answers(20), live);
    expect(dear.received).toHaveLength(6);
    expect(dear.judge.spent.cost).toBeCloseTo(maxCost, 12);
    expect(verdicts.at(-1)!.raw).toBe(`not asked: maxCost ${maxCost} is reached`);

    const busy = await judgeOf(
      ({ prompt }) => (numberIn(prompt) < 20 ? failed(429) : graded),
      { maxRetries: 1 },
      { maxCost: 20 * ofGraded + most, concurrency: 4 },
    );
    const later = await busy.judge.grade(answers(40), live);
    expect(later.filter(({ status }) => status === "graded")).toHaveLength(20);
    expect(busy.received).toHaveLength(60);
  });
});
