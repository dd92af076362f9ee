import { judgeGrader, type GradeRequest, type JudgeOptions } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { serveInTests, type Act, type Received } from "../models/api-server.test-data.ts";
import { skipWaits } from "../models/skip-waits.test-data.ts";
import { anthropicModel, chatCompletionsModel, type ServedModelOptions } from "../index.ts";

const callOptions = { signal: new AbortController().signal };
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
/** The maximum cost of a request with a prompt of 4 bytes: 4 + 64 (template) input tokens, 100 output tokens. */
const maxRequestCost = (68 * 3 + 100 * 15) / 1e6;

describe.each([
  { name: "openai", open: chatCompletionsModel, ofGraded: (100 * 3 + 20 * 15) / 1e6 },
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
    return { ...server, judge: await judgeGrader({ model, ...plain, ...options }) };
  };

  it("counts every request, and books its maximum cost if the server may have generated a token", async () => {
    /** The server's first responses for an answer, the number of requests, and how many may be billed without a grade. */
    const cases: readonly { responses: readonly Act[]; requests: number; mayBeBilled: number }[] = [
      { responses: [], requests: 1, mayBeBilled: 0 },
      { responses: [failed(429)], requests: 2, mayBeBilled: 0 },
      { responses: [failed(429), failed(529)], requests: 3, mayBeBilled: 0 },
      { responses: [failed(429), failed(500)], requests: 3, mayBeBilled: 1 },
      { responses: [failed(503), failed(504)], requests: 3, mayBeBilled: 2 },
      { responses: ["reset"], requests: 2, mayBeBilled: 1 },
      { responses: ["stall"], requests: 2, mayBeBilled: 1 },
      { responses: ["stall in the body"], requests: 2, mayBeBilled: 1 },
      { responses: [{ body: "<html>gateway</html>" }], requests: 2, mayBeBilled: 1 },
    ];
    /** Cases that end with an error. */
    const errors: readonly { responses: readonly Act[]; requests: number; mayBeBilled: number }[] = [
      { responses: [429, 429, 429].map(failed), requests: 3, mayBeBilled: 0 },
      { responses: [429, 500, 429].map(failed), requests: 3, mayBeBilled: 1 },
      { responses: [401].map(failed), requests: 1, mayBeBilled: 0 },
      { responses: [404].map(failed), requests: 1, mayBeBilled: 0 },
      // A content filter reads the prompt, and some providers bill that.
      { responses: [400].map(failed), requests: 1, mayBeBilled: 1 },
      { responses: [{ body: "null" }], requests: 1, mayBeBilled: 1 },
    ];
    const all = [...cases, ...errors];
    const seen = new Map<number, number>();
    const { judge, received } = await judgeOf(
      ({ prompt }) => {
        const at = numberIn(prompt);
        const before = seen.get(at) ?? 0;
        seen.set(at, before + 1);
        return all[at]!.responses[before] ?? graded;
      },
      { maxRetries: 2, timeoutSeconds: 3 },
      { concurrency: all.length },
    );
    const verdicts = await judge.grade(answers(all.length), callOptions);
    expect(verdicts.map(({ status, spent }) => [status, spent])).toEqual(
      all.map(({ requests, mayBeBilled }, at) => [
        at < cases.length ? "graded" : "error",
        expect.objectContaining({
          calls: requests,
          cost: expect.closeTo(
            mayBeBilled * maxRequestCost + (at < cases.length ? ofGraded : 0),
            12,
          ) as number,
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
    const judge = await judgeGrader({ model, price });
    expect(await judge.grade(answers(1), callOptions)).toMatchObject([
      { status: "error", spent: { calls: 2, cost: 0 } },
    ]);
  });

  it("counts retries against maxCalls", async () => {
    const { judge, received } = await judgeOf(
      () => failed(429),
      { maxRetries: 4 },
      { maxCalls: 7, concurrency: 4 },
    );
    const verdicts = await judge.grade(answers(20), callOptions);
    expect([received.length, judge.spent.calls]).toEqual([7, 7]);
    const reasons = new Set(verdicts.map(({ raw }) => raw));
    expect(reasons).toEqual(
      new Set(["not asked: maxCalls 7 is reached", "not asked again: maxCalls 7 is reached"]),
    );
  });

  it("counts only retries that may be billed against maxCost", async () => {
    const maxCost = 6 * maxRequestCost;
    const billed = await judgeOf(() => failed(500), { maxRetries: 3 }, { maxCost, concurrency: 3 });
    const verdicts = await billed.judge.grade(answers(20), callOptions);
    expect(billed.received).toHaveLength(6);
    expect(billed.judge.spent.cost).toBeCloseTo(maxCost, 12);
    expect(verdicts.at(-1)!.raw).toBe(`not asked: maxCost ${maxCost} is reached`);

    const unbilled = await judgeOf(
      ({ prompt }) => (numberIn(prompt) < 20 ? failed(429) : graded),
      { maxRetries: 1 },
      { maxCost: 20 * ofGraded + maxRequestCost, concurrency: 4 },
    );
    const later = await unbilled.judge.grade(answers(40), callOptions);
    expect(later.filter(({ status }) => status === "graded")).toHaveLength(20);
    expect(unbilled.received).toHaveLength(60);
  });
});
