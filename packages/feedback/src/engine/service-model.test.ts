import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { jsonService } from "@periodic-eval/remote";
import { afterEach, describe, expect, it } from "vitest";
import { httpEngine } from "./http-engine.ts";
import { serviceModel } from "./service-model.ts";

let close = () => {};
afterEach(() => close());

const score = { logprob_sum: -3, logprobs: [-1, -2], is_greedy: false, truncated_tokens: 2 };
const choice = { index: 0, message: { role: "assistant", content: "Blue." }, finish_reason: "stop" };
const replies: Readonly<Record<string, unknown>> = {
  "/v1/score": { ...score, token_is_greedy: [true, false] },
  "/v1/chat/completions": { model: "x", choices: [choice] },
};

/** Starts a service with one reply per path, and returns a model that uses it. */
async function served(given: Readonly<Record<string, unknown>> = replies) {
  const received: string[] = [];
  const server = createServer((request, response) => {
    received.push(request.url!);
    request.resume().on("end", () => response.end(JSON.stringify(given[request.url!])));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  close = () => {
    server.closeAllConnections();
    server.close();
  };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service = jsonService({ url, tokenEnv: "NO_TOKEN_OF_THE_TEST", maxRetries: 3 });
  const facts = { model: "x", engine: null, canScore: true };
  return { received, model: serviceModel({ name: "x", service, gateway: null, facts, adapter: null }) };
}

const { signal } = new AbortController();
const pairs = [1, 2].map((id) => ({ context: { text: "The sky" }, continuation: { ids: [id, id] } }));
const draws = ["a", "b"].map((seed) => ({
  prompt: { messages: [{ role: "user", content: "Which colour?" }] },
  sampling: { maxNewTokens: 2, temperature: 1, seed },
}));

describe("serviceModel", () => {
  it("returns tokenIsGreedy if the service reports it for every token, and null otherwise", async () => {
    const { model } = await served();
    const [one] = await model.logLikelihoods!(pairs, { signal });
    expect(one).toMatchObject({ isGreedy: false, tokenIsGreedy: [true, false], truncatedTokens: 2 });
    close();
    for (const token_is_greedy of [undefined, null, [true], [true, 1], "yes"]) {
      const other = await served({ "/v1/score": { ...score, token_is_greedy } });
      const [scored] = await other.model.logLikelihoods!(pairs, { signal });
      expect(scored!.tokenIsGreedy).toBeNull();
      close();
    }
  });

  it("throws for log-probabilities above 0", async () => {
    const { model } = await served({ "/v1/score": { logprobs: [0.5, -2] } });
    await expect(model.logLikelihoods!(pairs, { signal })).rejects.toThrow("numbers of at most 0.02");
  });

  it("returns the sum of the tokens' log-probabilities, also if the service reports another", async () => {
    const { model } = await served({ "/v1/score": { ...score, logprob_sum: 7 } });
    expect((await model.logLikelihoods!(pairs, { signal }))[0]).toMatchObject({ sumNats: -3 });
  });

  it("returns null for truncated tokens that the service does not report", async () => {
    const { truncated_tokens: _, ...rest } = score;
    const { model } = await served({ "/v1/score": rest });
    expect((await model.logLikelihoods!(pairs, { signal }))[0]).toMatchObject({ truncatedTokens: null });
  });

  it.each([
    [{ prompt_tokens: 9, completion_tokens: 2 }, "length"],
    [{ prompt_tokens: 9, completion_tokens: 1 }, "stop"],
    [undefined, "stop"],
  ] as const)("finds a cut-off answer of a claas service by its usage: %j is %s", async (usage, finish) => {
    const reply = { model: "x", choices: [choice], usage };
    const { model } = await served({ "/v1/chat/completions": reply });
    expect((await model.generate(draws, { signal })).map((answer) => answer.finish)).toEqual([
      finish,
      finish,
    ]);
  });

  it("calls beforeRequest before each request, and sends none if it throws", async () => {
    const { model, received } = await served();
    let before = 0;
    const ended: boolean[] = [];
    const beforeRequest = () => {
      before += 1;
      return (mayBeBilled: boolean) => void ended.push(mayBeBilled);
    };
    const calls = [
      (given: object) => model.generate(draws, { signal, ...given }),
      (given: object) => model.logLikelihoods!(pairs, { signal, ...given }),
    ];
    for (const call of calls) await call({ beforeRequest });
    expect([before, received.length, ended]).toEqual([4, 4, Array(4).fill(true)]);
    for (const call of calls) {
      const spent = new Error("spent");
      const refuse = () => {
        throw spent;
      };
      await expect(call({ beforeRequest: refuse })).rejects.toBe(spent);
    }
    expect(received).toHaveLength(4);
  });
});

it.each([
  [{ timeoutSeconds: -5 }, "httpEngine options.timeoutSeconds: got -5"],
  [{ timeoutSeconds: Number.NaN }, "httpEngine options.timeoutSeconds: got NaN"],
  [{ timeoutSeconds: "9" }, 'httpEngine options.timeoutSeconds: got "9"'],
  [{ maxRetries: 1.5 }, "httpEngine options.maxRetries: got 1.5"],
  [{ maxRetries: -1 }, "httpEngine options.maxRetries: got -1"],
])("rejects the engine options %j", (limits, message) => {
  const open = () => httpEngine({ serviceUrl: "http://127.0.0.1:8000", ...(limits as object) });
  expect(open).toThrow(message);
  const service = () => jsonService({ url: "http://127.0.0.1:8000", tokenEnv: "X", ...(limits as object) });
  expect(service).toThrow(message.replace("httpEngine", "jsonService"));
});
