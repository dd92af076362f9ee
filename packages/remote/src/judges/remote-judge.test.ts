import { judgeGrader, type GradeRequest, type JudgeOptions, type Verdict } from "@periodic-eval/core";
import { describe, expect, it, vi } from "vitest";
import { completion, serveInTests, type Act, type Received } from "../models/api-server.test-data.ts";
import { skipWaits } from "../models/skip-waits.test-data.ts";
import { anthropicModel, chatCompletionsModel, type ServedModelOptions } from "../index.ts";

const callOptions = { signal: new AbortController().signal };
const key = "sk-very-secret-0123456789";
const serve = serveInTests(key);

const providers = [
  { name: "openai", open: chatCompletionsModel, path: "/chat/completions", input: 100, output: 20 },
  { name: "anthropic", open: anthropicModel, path: "/v1/messages", input: 90, output: 30 },
] as const;

const scores = (aligned: number) => ({ say: JSON.stringify({ aligned, coherent: 90 }) });
const answers = (count: number): GradeRequest[] =>
  Array.from({ length: count }, (_, at) => ({ question: "Why?", answer: `answer <${at}>` }));
const numberIn = (prompt: string) => Number(/answer <(\d+)>/.exec(prompt)![1]);
/** Returns headers that express a wait by two dates. */
const dates = (seconds: number) => {
  const now = Date.parse("2026-11-21T12:00:00Z");
  return { date: new Date(now).toUTCString(), "retry-after": new Date(now + 1000 * seconds).toUTCString() };
};
const soon = { "retry-after-ms": "1" };

describe.each(providers)("$name", ({ open, path, input, output }) => {
  const judgeOf = async (
    script: (request: Received, count: number) => Act,
    client: Partial<ServedModelOptions> = {},
    options: Partial<JudgeOptions> = {},
  ) => {
    const server = await serve(script);
    const model = open({ model: "judge-1", baseUrl: server.url, ...client });
    return { ...server, judge: await judgeGrader({ model, ...options }) };
  };

  it("sends temperature 0 and the key from the environment, and records the model name in the reply", async () => {
    const { judge, received } = await judgeOf(() => scores(12));
    await judge.check!(callOptions);
    const [verdict] = await judge.grade(answers(1), callOptions);
    expect(verdict).toMatchObject({ status: "graded", scores: { aligned: 12, coherent: 90 } });
    expect(verdict!.model).toMatch(/judge.*-2026-11-01$/);
    expect(received[1]).toMatchObject({ path, body: { model: "judge-1", temperature: 0, max_tokens: 512 } });
    expect(JSON.stringify(received[1]!.headers)).toContain(key);
    expect(judge.spent).toMatchObject({ calls: 2, inputTokens: 2 * input, outputTokens: 2 * output });
    expect(JSON.stringify([verdict, judge.describe!(), judge.fingerprint])).not.toContain(key);
  });

  it("retries failures up to maxRetries, loses no answer and counts every request", async () => {
    /** The server's first responses for an answer; after them it sends a grade. `maxRetries` is 2. */
    const cases: readonly { responses: readonly Act[]; status: string; attempts: number }[] = [
      { responses: [], status: "graded", attempts: 1 },
      { responses: [{ status: 429, headers: { "retry-after": "0.02" } }], status: "graded", attempts: 2 },
      { responses: [{ status: 429, headers: dates(1) }], status: "graded", attempts: 2 },
      { responses: [{ status: 503, headers: { "retry-after": "soon" } }], status: "graded", attempts: 2 },
      { responses: [500, 503].map((status) => ({ status, headers: soon })), status: "graded", attempts: 3 },
      { responses: ["reset"], status: "graded", attempts: 2 },
      {
        responses: [{ body: JSON.stringify(completion(scores(1))), cutAt: 40 }],
        status: "graded",
        attempts: 2,
      },
      { responses: [{ body: "<html>gateway</html>" }], status: "graded", attempts: 2 },
      { responses: ["stall"], status: "graded", attempts: 2 },
      { responses: ["stall in the body"], status: "graded", attempts: 2 },
      {
        responses: [500, 500, 529].map((status) => ({ status, headers: soon })),
        status: "error",
        attempts: 3,
      },
      { responses: [{ status: 429, headers: { "retry-after": "3600" } }], status: "error", attempts: 1 },
      { responses: [{ status: 429, headers: dates(3600) }], status: "error", attempts: 1 },
      { responses: [{ status: 400, message: "no such field" }], status: "error", attempts: 1 },
      { responses: [{ body: '{"choices": "none", "content": 7}' }], status: "error", attempts: 1 },
      { responses: [{ body: JSON.stringify("x".repeat(2 ** 23)) }], status: "error", attempts: 1 },
      { responses: [{ body: "null" }], status: "error", attempts: 1 },
      { responses: [{ say: "I'd rate it highly." }], status: "unparsed", attempts: 1 },
      { responses: [{ say: '{"aligned": "high", "coherent": 90}' }], status: "unparsed", attempts: 1 },
      { responses: [{ say: '{"aligned": 50, "coher' }], status: "unparsed", attempts: 1 },
    ];
    const count = cases.length;
    const errors = cases.filter(({ status }) => status === "error").length;
    const seen = new Map<number, number>();
    const cache = new Map<string, Verdict>();
    const { judge, received, unanswered } = await judgeOf(
      ({ prompt }) => {
        const at = numberIn(prompt);
        const before = seen.get(at) ?? 0;
        seen.set(at, before + 1);
        return cases[at]!.responses[before] ?? scores(at);
      },
      { maxRetries: 2, timeoutSeconds: 3 },
      { concurrency: count, cache },
    );
    skipWaits(unanswered);
    const verdicts = await judge.grade(answers(count), callOptions);
    expect(verdicts.map(({ status }, at) => ({ status, attempts: seen.get(at) }))).toEqual(
      cases.map(({ status, attempts }) => ({ status, attempts })),
    );
    for (const [at, verdict] of verdicts.entries())
      if (verdict.status === "graded") expect(verdict.scores["aligned"]).toBe(at);
    expect(verdicts.map(({ raw }) => raw).join()).toMatch(/400 .*no such field/);
    const before = received.length;
    expect(judge.spent.calls).toBe(before);

    // Only errors are judged again, and the server now grades them.
    const again = await judge.grade(answers(count), callOptions);
    expect(again.filter(({ status }) => status === "error")).toEqual([]);
    expect([received.length - before, judge.spent.calls]).toEqual([errors, before + errors]);
  });

  it("stays within maxCalls and maxCost, computed from the server's token counts", async () => {
    const price = { inputPerMillion: 3, outputPerMillion: 15 };
    const maxCost = 0.05;
    const { judge, received } = await judgeOf(() => scores(1), {}, { price, maxCost, concurrency: 16 });
    const verdicts = await judge.grade(answers(120), callOptions);
    const billed = (received.length * (input * 3 + output * 15)) / 1e6;
    expect(billed).toBeLessThanOrEqual(maxCost);
    expect(judge.spent.cost).toBeCloseTo(billed, 10);
    expect(verdicts.filter(({ status }) => status === "graded")).toHaveLength(received.length);
    expect(verdicts.filter(({ raw }) => raw === "not asked: maxCost 0.05 is reached")).toHaveLength(
      120 - received.length,
    );
    const few = await judgeOf(() => scores(1), {}, { maxCalls: 7 });
    await few.judge.grade(answers(20), callOptions);
    expect(few.received).toHaveLength(7);
  });

  it("masks a key that the server echoes", async () => {
    const echo: readonly Act[] = [
      { status: 401, message: `bad key ${key}` },
      { status: 400, message: `headers were x-api-key: ${key}` },
      { say: `the key is ${key}` },
    ];
    const { judge, model } = await judgeOf(({ prompt }) => echo[numberIn(prompt)]!).then((made) => ({
      ...made,
      model: open({ model: "judge-1", baseUrl: made.url }),
    }));
    const verdicts = await judge.grade(answers(3), callOptions);
    expect(verdicts.map(({ status }) => status)).toEqual(["error", "error", "unparsed"]);
    expect(verdicts[2]!.raw).toBe("the key is ***");
    const prompt = { messages: [{ role: "user", content: "answer <0>" }] };
    const sampling = { maxNewTokens: 1, temperature: 0, seed: "" };
    const error = await model
      .generate([{ prompt, sampling }], callOptions)
      .catch((thrown: unknown) => thrown as Error);
    const { inspect } = await import("node:util");
    const all = inspect([verdicts, error, model, judge.describe!()], { depth: null, showHidden: true });
    expect(all).toContain("bad key ***");
    expect(all).not.toContain(key);
  });

  it("shows no part of the key if the message is cut inside the key", async () => {
    for (const before of [240, 255, 262, 270, 280, 290]) {
      const message = `${"x".repeat(before)}${key} and more`;
      const { judge } = await judgeOf(() => ({ status: 400, message }));
      const [verdict] = await judge.grade(answers(1), callOptions);
      expect(verdict!.raw).toContain("x");
      expect(verdict!.raw).not.toContain(key.slice(0, 4));
    }
  });

  it("puts the names of the body's fields and a hash into the identity, but not their values", () => {
    const identityOf = (secret: string) =>
      open({ model: "m", baseUrl: "http://localhost:1", body: { portkey: secret, top_k: 1 } }).identity;
    const { details } = identityOf("pk-0123456789");
    expect(details).toEqual({ body: { fields: ["portkey", "top_k"], hash: expect.any(String) } });
    expect(JSON.stringify(details)).not.toContain("0123456789");
    expect(identityOf("pk-other").details).not.toEqual(details);
  });

  it("does not draw from the global Math.random", async () => {
    const { judge, received, unanswered } = await judgeOf((_, count) =>
      count === 0 ? { status: 500 } : scores(1),
    );
    skipWaits(unanswered);
    let draws = 0;
    const real = Math.random;
    vi.spyOn(Math, "random").mockImplementation(() => (draws++, real()));
    expect(await judge.grade(answers(1), callOptions)).toMatchObject([{ status: "graded" }]);
    expect([received.length, draws]).toEqual([2, 0]);
    Math.random();
    expect(draws).toBe(1);
  });

  it("aborts while it waits for a retry, and keeps the verdicts so far", { timeout: 25_000 }, async () => {
    const cache = new Map<string, Verdict>();
    const stop = new AbortController();
    const { judge } = await judgeOf(
      ({ prompt }) => {
        if (numberIn(prompt) === 0) return scores(1);
        setTimeout(() => stop.abort(new Error("run over")), 20);
        return { status: 429, headers: { "retry-after": "30" } };
      },
      {},
      { cache, concurrency: 1 },
    );
    await expect(judge.grade(answers(3), { signal: stop.signal })).rejects.toThrow("run over");
    expect(await judge.grade(answers(1), callOptions)).toMatchObject([{ status: "graded" }]);
    expect(judge.spent.cached).toBe(1);
  });

  it("throws for a missing key, a password in the address, an unreachable server and an unknown option", async () => {
    vi.stubEnv("OPENAI_API_KEY", "");
    vi.stubEnv("ANTHROPIC_API_KEY", " ");
    expect(() => open({ model: "m" })).toThrow(/Set (OPENAI|ANTHROPIC)_API_KEY/);
    expect(() => open({ model: "m", baseUrl: "http://localhost:1", apiKeyEnv: "OTHER_KEY" })).toThrow(
      "Set OTHER_KEY",
    );
    const secret = `http://user:${key}@localhost`;
    expect(() => open({ model: "m", baseUrl: secret })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(key) as string }) as Error,
    );
    const gone = await serve(() => "reset");
    gone.close();
    const nobody = open({ model: "m", baseUrl: gone.url, maxRetries: 0 });
    await expect((await judgeGrader({ model: nobody })).check!(callOptions)).rejects.toThrow("ECONNREFUSED");
    expect(() => open({ model: "m", maxRetry: 3 } as ServedModelOptions)).toThrow(
      'Did you mean "maxRetries"?',
    );
  });
});

describe("method logprob", () => {
  it("computes the score from the log-probabilities of OpenAI's most likely tokens", async () => {
    const server = await serve(({ prompt }) =>
      prompt.includes("100") && !prompt.includes("<0>") && prompt.startsWith("Reply")
        ? { say: "100", top: { "100": 1 } }
        : { say: "80", top: { "80": 0.5, "60": 0.25, REFUSAL: 0.25 } },
    );
    const model = chatCompletionsModel({ model: "judge-1", baseUrl: server.url });
    const judge = await judgeGrader({ model, method: "logprob" });
    await judge.check!(callOptions);
    const [verdict] = await judge.grade(answers(1), callOptions);
    if (verdict!.status !== "graded") throw new Error(`${verdict!.status}: ${verdict!.raw}`);
    // (.5 · 80 + .25 · 60) / .75
    expect(verdict!.scores["aligned"]).toBeCloseTo(220 / 3, 10);
    expect(server.received.at(-1)!.body).toMatchObject({ logprobs: true, top_logprobs: 20, temperature: 0 });
  });

  it("throws in the preflight check for Anthropic, whose API has no log-probabilities", async () => {
    const server = await serve(() => scores(1));
    const judge = await judgeGrader({
      model: anthropicModel({ model: "claude-x", baseUrl: server.url }),
      method: "logprob",
    });
    await expect(judge.check!(callOptions)).rejects.toThrow('Judge with method "json"');
    expect(server.received).toEqual([]);
  });
});
