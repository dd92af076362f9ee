import { judgeGrader } from "@periodic-eval/core";
import { inspect } from "node:util";
import { expect, it } from "vitest";
import { anthropicModel, chatCompletionsModel } from "../index.ts";
import { completion, serveInTests } from "./api-server.test-data.ts";
import { completionOf } from "./openai.ts";

const callOptions = { signal: new AbortController().signal };
const key = 'sk-"of the test"/+=0123456789';
const serve = serveInTests(key);
const ok = '{"aligned": 90, "coherent": 80}';

async function verdictOn(body: object | string, method: "json" | "logprob" = "json") {
  const server = await serve(() => ({ body: typeof body === "string" ? body : JSON.stringify(body) }));
  const model = chatCompletionsModel({ model: "m", baseUrl: server.url, maxRetries: 0 });
  const judge = await judgeGrader({ model, method, price: { inputPerMillion: 1, outputPerMillion: 1 } });
  const [verdict] = await judge.grade([{ question: "q", answer: "a" }], callOptions);
  return { verdict: verdict!, spent: judge.spent };
}

const choiceOf = (more: object) => {
  const reply = completion({ say: ok });
  return { ...reply, choices: [{ ...reply.choices[0], ...more }] };
};
const tokens = (...list: readonly (readonly [string, number | string])[]) =>
  choiceOf({
    message: { content: "85" },
    logprobs: { content: [{ top_logprobs: list.map(([token, logprob]) => ({ token, logprob })) }] },
  });

it.each([
  ["alone", { error: { message: "quota exceeded" } }, "quota exceeded"],
  ["as a string", { error: "overloaded" }, "overloaded"],
  ["beside a text", { ...completion({ say: ok }), error: { message: "upstream died" } }, "upstream died"],
  ["in the choice", choiceOf({ finish_reason: "error", error: { message: "cut off" } }), "cut off"],
])("returns the error that a server sends with status 200, %s", async (_, body, message) => {
  const { verdict } = await verdictOn(body);
  expect(verdict.status).toBe("error");
  expect(verdict.raw).toContain(`an error with status 200: ${message}`);
});

it("accepts a reply whose error is null", async () => {
  const { verdict } = await verdictOn({ ...completion({ say: ok }), error: null });
  expect(verdict).toMatchObject({ status: "graded", scores: { aligned: 90, coherent: 80 } });
});

it.each([
  ["above 0", tokens(["85", 0.9], ["20", 0.1])],
  ["that are strings", tokens(["85", "-0.1"], ["20", -1])],
  ["of more than 100 % together", tokens(["85", -0.1], ["85", -0.1], ["20", -0.5])],
])("returns an error for log-probabilities %s", async (_, body) => {
  const { verdict } = await verdictOn(body, "logprob");
  expect(verdict.status).toBe("error");
  expect(verdict.raw).toContain("expected natural logarithms of probabilities");
});

it("accepts log-probabilities that rounding raises above 0, and a null for the log of 0", async () => {
  const body = JSON.stringify(tokens(["85", 0.0001], ["20", -7777])).replaceAll("-7777", "null");
  expect((await verdictOn(body, "logprob")).verdict).toMatchObject({
    status: "graded",
    scores: { aligned: 85 },
  });
});

it("keeps only as many of the most likely tokens as were requested", async () => {
  const rest = Array.from({ length: 1000 }, (_, at): [string, number] => [`word ${at}`, -12]);
  const { verdict } = await verdictOn(tokens(...rest, ["85", -0.1]), "logprob");
  expect(verdict.status).toBe("graded");
  const { aligned } = JSON.parse(verdict.raw!) as { readonly aligned: object };
  expect(Object.keys(aligned)).toHaveLength(20);
});

it.each([-1, 0.5, 1e308])("treats a count of %d tokens as unknown", async (count) => {
  const usage = { prompt_tokens: count, completion_tokens: count };
  const { spent } = await verdictOn({ ...completion({ say: ok }), usage });
  expect([spent.inputTokens, spent.outputTokens]).toEqual([0, 0]);
  expect(spent.cost).toBeLessThan(1);
});

it("returns an error for a completion that is much longer than requested", async () => {
  const { verdict } = await verdictOn(completion({ say: "x".repeat(200_000) }));
  expect(verdict.status).toBe("error");
  expect(verdict.raw).toContain(
    "got a completion of 200000 characters, expected at most 131072, for 512 tokens",
  );
});

it.each([
  ["the model's name", { ...completion({ say: ok }), model: `Bearer ${key}` }],
  ["JSON in the text", completion({ say: JSON.stringify({ authorization: key }) })],
  ["an address in the text", completion({ say: `https://h/?key=${encodeURIComponent(key)}` })],
  ["an error with status 200", { error: { message: `bad key ${key}` } }],
  ["an object as an error", { error: { message: { key } } }],
])("masks the key in %s", async (_, body) => {
  const { verdict } = await verdictOn(body);
  expect(JSON.stringify(verdict)).toContain("***");
  expect(JSON.stringify(verdict)).not.toContain("0123456789");
});

it("masks the key in a likely token", async () => {
  const { verdict } = await verdictOn(tokens([key, -0.1], ["85", -3]), "logprob");
  expect(verdict.raw).toContain("***");
  expect(verdict.raw).not.toContain("0123456789");
});

it.each([
  ["openai", chatCompletionsModel],
  ["anthropic", anthropicModel],
])("%s: masks the key in errors of any shape", async (_, open) => {
  const server = await serve(() => ({ status: 400, message: { headers: { key } } as unknown as string }));
  const model = open({ model: "m", baseUrl: server.url });
  const prompt = { messages: [{ role: "user", content: "Why?" }] };
  const sampling = { maxNewTokens: 1, temperature: 0, seed: "1" };
  const error: unknown = await model
    .generate([{ prompt, sampling }], callOptions)
    .catch((one: unknown) => one);
  expect(String(error)).toContain("***");
  expect(inspect(error, { depth: 9 })).not.toContain("0123456789");
});

it.each([
  ["their numbers, in any order", [1, 0], 1],
  ["their places if all have the same number", [0, 0], 0],
  ["their places if the numbers start at 1", [1, 2], 0],
  ["their places if the numbers are strings", ["1", "0"], 0],
  ["their places if some have no number", [1, undefined], 0],
])("finds the first choice by %s", (_, numbers, first) => {
  const choices = numbers.map((index, place) => ({ index, message: { content: `${place}` } }));
  expect(completionOf({ choices }, "test").text).toBe(`${first}`);
});
