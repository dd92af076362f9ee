import type { EvaluableModel, PeriodicEvalError } from "@periodic-eval/core";
import { fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { inspect } from "node:util";
import { beforeEach, expect, it, vi } from "vitest";
import { openAICompatible, vllm } from "../index.ts";
import type { ServerOptions } from "./options.ts";
import { scriptedServer, type Fault, type Received } from "./scripted-server.test-data.ts";

const key = 'secret-"key"-of-the-test';
beforeEach(() => void vi.stubEnv("VLLM_API_KEY", key));

const tokenizer = fakeTokenizer();
const model = fakeModel({ tokenizer });
const live = () => ({ signal: new AbortController().signal });

/** Starts a server that behaves until `fault.now` is set, and connects to it. */
async function connect(options: Partial<ServerOptions> = {}) {
  const fault: { now: ((request: Received, count: number) => Fault | null) | null } = { now: null };
  let count = 0;
  const server = await scriptedServer({
    model,
    fault: (request) => fault.now?.(request, ++count) ?? null,
  });
  const served = await vllm({
    urls: server.url,
    model: "base",
    tokenizer,
    maxRetries: 1,
    timeoutSeconds: 5,
    ...options,
  });
  return { server, served, fault };
}

const scored = [
  { context: { text: "The capital of France is" }, continuation: " Paris" },
  { context: { text: "Two and two make" }, continuation: " four" },
];
const written = (maxNewTokens: number, length = 10) => [
  {
    prompt: { ids: Array.from({ length }, (_, id) => id) },
    sampling: { maxNewTokens, temperature: 1, seed: "s" },
  },
];

/** Returns the error of a call, and expects that it does not contain the key. */
async function errorOf(promise: Promise<unknown>): Promise<PeriodicEvalError> {
  const error = await promise.then(
    () => null,
    (one: unknown) => one as PeriodicEvalError,
  );
  expect(error).not.toBeNull();
  expect(inspect(error, { depth: 9 })).not.toContain("of-the-test");
  return error!;
}

interface Choice {
  readonly prompt_token_ids: readonly number[];
  readonly prompt_logprobs: readonly (object | null)[];
}

const changed =
  (change: (choice: Choice) => object): Fault =>
  (reply: { choices: Choice[] }) => ({
    ...reply,
    choices: reply.choices.map((choice) => ({ ...choice, ...change(choice) })),
  });

it.each<[string, Fault, Partial<ServerOptions>]>([
  ["too many requests", { status: 429, headers: { "retry-after": "0.05" } }, {}],
  ["a failing server", { status: 500 }, {}],
  ["a stalling server", "stall", { timeoutSeconds: 0.3 }],
  ["a dripping server", "drip", { timeoutSeconds: 0.3 }],
  ["a broken connection", "reset", {}],
  ["a reply that is not JSON", { body: '{"choices": [' }, {}],
])("returns the right numbers after %s", async (_, trouble, options) => {
  const { served, fault } = await connect(options);
  const expected = await model.logLikelihoods(scored, live());
  fault.now = (_request, count) => (count === 1 ? trouble : null);
  let [began, ended, tokens] = [0, 0, 0];
  const counting = {
    ...live(),
    countTokens: (more: number) => (tokens += more),
    beforeRequest: () => (began++, () => void ended++),
  };
  expect((await served.logLikelihoods!(scored, counting)).map(({ sumNats }) => sumNats)).toEqual(
    expected.map(({ sumNats }) => sumNats),
  );
  // Two requests of one sequence each, the generated tokens included, and one attempt more.
  expect([began, ended, tokens]).toEqual([3, 3, 30 + 1 + 21 + 1]);
});

it.each<[string, Fault, Partial<PeriodicEvalError>]>([
  ["a failing server", { status: 500, message: `you sent ${key}` }, { code: "model" }],
  [
    "a rejected key",
    { status: 401, message: `no ${key}` },
    { code: "config", detail: { kind: "http", status: 401 } },
  ],
  ["a stalling server", "stall", { code: "model" }],
  ["a dripping server", "drip", { code: "model" }],
  [
    "a redirect",
    { status: 307, headers: { location: "http://127.0.0.1:9/v1/completions" } },
    { code: "model" },
  ],
  ["a reply that is not JSON", { body: "<html>" }, { code: "model" }],
  ["JSON of another shape", { body: '{"text": "hi"}' }, { code: "model", got: "a reply with 0 choices" }],
  ["a missing choice", (reply: { choices: unknown[] }) => ({ ...reply, choices: [] }), { code: "model" }],
  [
    "missing log-probs",
    changed(() => ({ prompt_logprobs: null })),
    { got: "a reply without a requested log-probability" },
  ],
  [
    "other token ids",
    changed(({ prompt_token_ids: ids }) => ({ prompt_token_ids: ids.map(() => 7) })),
    { code: "model" },
  ],
  [
    "no token ids",
    changed(() => ({ prompt_token_ids: undefined })),
    { got: "a reply without prompt_token_ids" },
  ],
  [
    "a log-probability of −∞",
    changed(({ prompt_logprobs: entries }) => ({
      prompt_logprobs: entries.map(
        (entry) =>
          entry && Object.fromEntries(Object.keys(entry).map((id) => [id, { logprob: -9999, rank: 1 }])),
      ),
    })),
    { got: "the log-probability -9999" },
  ],
])("throws for %s", async (_, trouble, expected) => {
  const { served, fault, server } = await connect({ timeoutSeconds: 0.3 });
  fault.now = ({ path }) => (path === "/v1/completions" ? trouble : null);
  const before = server.received.length;
  expect(await errorOf(served.logLikelihoods!(scored, live()))).toMatchObject(expected);
  expect(
    server.received.slice(before).every(({ headers }) => headers.authorization === `Bearer ${key}`),
  ).toBe(true);
});

it("names the setting that keeps vLLM's engine alive if it dies while it scores", async () => {
  const { served, fault } = await connect({ maxRetries: 0 });
  fault.now = () => "reset";
  const { fix } = await errorOf(served.logLikelihoods!(scored, live()));
  expect(fix).toContain("--lora-target-modules");
});

it("does not follow a redirect with the key", async () => {
  const other = await scriptedServer({ model });
  const { served, fault } = await connect();
  fault.now = () => ({ status: 307, headers: { location: `${other.url}/v1/completions` } });
  expect(await errorOf(served.logLikelihoods!(scored, live()))).toMatchObject({ code: "model" });
  expect(other.received).toEqual([]);
});

it("refuses a completion whose max_tokens the server cut, but not one at the end of the context", async () => {
  const { served, fault, server } = await connect();
  const [whole] = await served.generate!(written(40, 118), live());
  expect([whole!.finish, whole!.ids!.length]).toEqual(["length", 10]);
  fault.now = ({ body }) => {
    if (body["max_tokens"] === 6) (body as { max_tokens: number }).max_tokens = 3;
    return null;
  };
  expect(await errorOf(served.generate!(written(6), live()))).toMatchObject({
    code: "model",
    where: 'vllm("base")',
  });
  expect(server.received.at(-1)!.body).toMatchObject({ ignore_eos: true, stop_token_ids: tokenizer.stopIds });
});

it.each([
  ["log-probabilities of other tokens", { token_logprobs: [-1, -2, -3] }],
  ["one log-probability more", { token_logprobs: [-1, -2, -3, -4, -5, -6, -7] }],
  ["no most likely tokens", { top_logprobs: null }],
  ["the most likely tokens of other positions", { top_logprobs: [{ "token_id:3": -1, "token_id:4": -2 }] }],
])("refuses a completion with %s", async (_, logprobs) => {
  const { served, fault } = await connect();
  fault.now = () => (reply: { choices: readonly { readonly logprobs: object }[] }) => ({
    ...reply,
    choices: reply.choices.map((choice) => ({ ...choice, logprobs: { ...choice.logprobs, ...logprobs } })),
  });
  const [asked] = written(6);
  const requests = [{ ...asked!, sampling: { ...asked!.sampling, topTokens: 2 } }];
  expect(await errorOf(served.generate!(requests, live()))).toMatchObject({
    code: "model",
    expected: "one for each token of the completion",
  });
});

it("refuses a chat whose max_tokens the server cut", async () => {
  const { served, fault } = await connect({ tokenizer: undefined as never });
  expect(served.logLikelihoods).toBeUndefined();
  const asked = [
    {
      prompt: { messages: [{ role: "user", content: "Hi" }] },
      sampling: { maxNewTokens: 6, temperature: 0, seed: "" },
    },
  ];
  expect((await served.generate!(asked, live()))[0]!.text).not.toBe("");
  fault.now = ({ body }) => {
    (body as { max_tokens: number }).max_tokens = 2;
    return null;
  };
  expect(await errorOf(served.generate!(asked, live()))).toMatchObject({ code: "model" });
});

it("refuses a server with another tokenizer", async () => {
  const { url } = await scriptedServer({ model });
  const other = fakeTokenizer({ beginOfText: true });
  expect(await errorOf(vllm({ urls: url, model: "base", tokenizer: other }))).toMatchObject({
    code: "model",
    expected: expect.stringContaining(url) as string,
  });
});

it.each<[string, (request: Received) => Fault | null, readonly string[]]>([
  [
    "prompt log-probs",
    ({ body }) => (body["prompt_logprobs"] === undefined ? null : changed(() => ({ prompt_logprobs: null }))),
    ["generate"],
  ],
  ["/tokenize", ({ path }) => (path === "/tokenize" ? { status: 404 } : null), []],
  [
    "ids of completions",
    ({ body, path }) =>
      body["prompt_logprobs"] === undefined && path === "/v1/completions"
        ? changed(() => ({ token_ids: undefined }))
        : null,
    ["logLikelihoods", "nextToken"],
  ],
])("has no ability that the server cannot give: %s", async (_, missing, abilities) => {
  const { url } = await scriptedServer({
    model,
    fault: (request) =>
      request.path === "/v1/completions" || request.path === "/tokenize" ? missing(request) : null,
  });
  const served: EvaluableModel = await openAICompatible({
    urls: url,
    model: "base",
    tokenizer,
    apiKeyEnv: null,
  });
  const names = ["logLikelihoods", "nextToken", "generate"] as const;
  expect(names.filter((name) => served[name] !== undefined)).toEqual(abilities);
});

it("scores every question once although a replica is killed", async () => {
  const one = await scriptedServer({ model, delay: 5 });
  const two = await scriptedServer({ model, delay: 5 });
  const served = await vllm({ urls: [one.url, two.url], model: "base", tokenizer, concurrency: 2 });
  const questions = Array.from({ length: 300 }, (_, index) => ({
    context: { text: `Question ${index}` },
    continuation: " yes",
  }));
  let [tokens, pending] = [0, 0];
  const answers = served.logLikelihoods!(questions, {
    ...live(),
    countTokens: (more) => (tokens += more),
    beforeRequest: () => (pending++, () => void pending--),
  });
  const before = two.received.length;
  await vi.waitUntil(() => two.received.length >= before + 3, 60_000);
  two.close();
  expect(await answers).toEqual(await model.logLikelihoods(questions, live()));
  const lengths = questions.map(({ context }) => context.text.length + 5);
  expect([tokens, pending]).toEqual([lengths.reduce((sum, length) => sum + length, 0), 0]);
});

it("continues with a server that restarts, and refuses it if it then serves another model", async () => {
  const { server, served } = await connect({ maxRetries: 6 });
  const expected = await model.logLikelihoods(scored, live());
  server.close();
  const asked = served.logLikelihoods!(scored, live());
  const again = await scriptedServer({ model, port: server.port });
  expect((await asked).map(({ sumNats }) => sumNats)).toEqual(expected.map(({ sumNats }) => sumNats));
  again.close();
  const later = served.logLikelihoods!(scored, live());
  await scriptedServer({ model: fakeModel({ tokenizer, weights: () => "other" }), port: server.port });
  expect(await errorOf(later)).toMatchObject({ code: "model", expected: "at most 0.0010" });
  expect(await errorOf(served.check!(live()))).toMatchObject({ code: "model" });
});

it("refuses replicas with different numbers", async () => {
  const one = await scriptedServer({ model });
  const two = await scriptedServer({ model: fakeModel({ tokenizer, weights: () => "other" }) });
  const urls = [one.url, two.url];
  expect(await errorOf(vllm({ urls, model: "base", tokenizer }))).toMatchObject({
    code: "model",
    got: expect.stringContaining(two.url) as string,
  });
});

it.each<[string, Partial<ServerOptions>, Partial<PeriodicEvalError>]>([
  ["an unknown model", { model: "nope" }, { code: "config", path: ["model"] }],
  ["no address", { urls: [] }, { code: "config", path: ["urls"] }],
  [
    "a key in the address",
    { urls: `http://user:${"of-the-test"}@127.0.0.1` },
    { code: "config", path: ["url"] },
  ],
  ["an unset key", { apiKeyEnv: "NO_SUCH_KEY" }, { code: "config", path: ["apiKeyEnv"] }],
  ["a server that does not run", { urls: "http://127.0.0.1:9", maxRetries: 0 }, { code: "model" }],
])("throws for %s", async (_, options, expected) => {
  const { url } = await scriptedServer({ model });
  expect(await errorOf(vllm({ urls: url, model: "base", tokenizer, ...options }))).toMatchObject(expected);
});

it("ends the call with the reason of its signal", async () => {
  const { served, fault } = await connect();
  fault.now = () => "stall";
  const stop = new AbortController();
  const asked = served.logLikelihoods!(scored, { signal: stop.signal });
  stop.abort(new Error("enough"));
  await expect(asked).rejects.toThrow("enough");
});
