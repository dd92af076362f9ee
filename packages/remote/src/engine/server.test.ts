import { fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openAICompatible, vllm } from "../index.ts";
import { scriptedServer, type Fault, type Received } from "./scripted-server.test-data.ts";

const tokenizer = fakeTokenizer();
const model = fakeModel({ tokenizer });
const live = () => ({ signal: new AbortController().signal });
const prompt = { text: "The capital of France is" };

interface Scored {
  readonly prompt_logprobs: readonly (Record<string, { logprob: number; rank: number }> | null)[] | null;
}

/** Adds to all log-probabilities of prompts. */
const shifted =
  (nats: number): Fault =>
  (reply: { choices?: Scored[] }) => ({
    ...reply,
    choices: reply.choices?.map((choice) => ({
      ...choice,
      prompt_logprobs:
        choice.prompt_logprobs?.map(
          (entry) =>
            entry &&
            Object.fromEntries(
              Object.entries(entry).map(([id, { logprob, rank }]) => [id, { logprob: logprob + nats, rank }]),
            ),
        ) ?? null,
    })),
  });

it("describes the server, and fingerprints its weights", async () => {
  const connect = async (weights: string) => {
    const { url } = await scriptedServer({ model: fakeModel({ tokenizer, weights: () => weights }) });
    return vllm({ urls: url, model: "base", tokenizer });
  };
  const { identity, contextLength, isServed } = await connect("a");
  expect(identity).toEqual({
    name: "base",
    engine: "vllm",
    dtype: "unknown",
    weights: expect.stringMatching(/^probe:/) as string,
    adapter: null,
    details: { version: "0.0.0", root: "/models/tiny", max_model_len: 128, scores_depend_on_batch: false },
  });
  expect([contextLength, isServed]).toEqual([126, true]);
  expect((await connect("a")).identity.weights).toBe(identity.weights);
  expect((await connect("b")).identity.weights).not.toBe(identity.weights);
});

it("records that scores depend on the other prompts of a batch, and then allows replicas such differences", async () => {
  const inBatch = (difference: number) =>
    scriptedServer({
      model,
      fault: ({ body }) =>
        Array.isArray(body["prompt"]) && body["prompt"].length > 1 ? shifted(difference) : null,
    });
  const one = await inBatch(-0.01);
  const { identity } = await vllm({ urls: one.url, model: "base", tokenizer });
  expect(identity.details).toMatchObject({ scores_depend_on_batch: true });
  const near = await scriptedServer({ model, fault: () => shifted(-0.03) });
  const far = await scriptedServer({ model, fault: () => shifted(-0.05) });
  await vllm({ urls: [one.url, near.url], model: "base", tokenizer });
  await expect(vllm({ urls: [one.url, far.url], model: "base", tokenizer })).rejects.toMatchObject({
    code: "model",
  });
});

it("scores candidates outside of the top log-probs as prompts", async () => {
  const { url, received } = await scriptedServer({ model });
  const served = await vllm({ urls: url, model: "base", tokenizer });
  const before = received.length;
  const requests = [{ prompt, candidates: Array.from({ length: 40 }, (_, id) => id) }];
  const [next] = await served.nextToken!(requests, live());
  const [expected] = await model.nextToken(requests, live());
  expect(next!.nats).toEqual(expected!.nats);
  expect(next!.entropyNats).toBeNull();
  const sent = received.slice(before).map(({ body }) => body);
  expect(sent.filter(({ logprobs }) => logprobs === 20)).toHaveLength(1);
  const scored = sent.flatMap(({ prompt_logprobs: scores, prompt: prompts }) =>
    scores === undefined ? [] : (prompts as readonly unknown[]),
  );
  // 20 of 261 tokens are among the most likely ones, so few of the 40 candidates are.
  expect(scored.length).toBeGreaterThan(30);
  expect(scored.length).toBeLessThanOrEqual(40);
});

it("returns the most likely tokens of each position, and no log-probabilities that are those after temperature", async () => {
  const { url } = await scriptedServer({ model });
  const sampling = { maxNewTokens: 5, temperature: 1, seed: "s", topTokens: 3 };
  const served = await vllm({ urls: url, model: "base", tokenizer });
  const [completion] = await served.generate!([{ prompt, sampling }], live());
  expect(completion!.topNats!.map((top) => top.length)).toEqual(completion!.ids!.map(() => 3));
  expect(completion!.tokenNats!.every((nats) => nats < 0)).toBe(true);

  const processed: Fault = (reply: { choices: { logprobs: { token_logprobs: readonly number[] } }[] }) => ({
    ...reply,
    choices: reply.choices.map((choice) => ({
      ...choice,
      logprobs: {
        ...choice.logprobs,
        token_logprobs: choice.logprobs.token_logprobs.map((nats) => nats / 2),
      },
    })),
  });
  const other = await scriptedServer({
    model,
    fault: ({ path, body }) =>
      path === "/v1/completions" && body["prompt_logprobs"] === undefined ? processed : null,
  });
  const tempered = await vllm({ urls: other.url, model: "base", tokenizer });
  const [one] = await tempered.generate!(
    [{ prompt, sampling: { maxNewTokens: 5, temperature: 1, seed: "s" } }],
    live(),
  );
  expect([one!.ids, one!.tokenNats]).toEqual([completion!.ids, null]);
  // Candidates are then all scored as prompts.
  const requests = [{ prompt, candidates: [1, 2] }];
  expect((await tempered.nextToken!(requests, live()))[0]!.nats).toEqual(
    (await model.nextToken(requests, live()))[0]!.nats,
  );
});

it("ends completions at stop strings and stop tokens as a model in memory does", async () => {
  const { url } = await scriptedServer({ model });
  const served = await vllm({ urls: url, model: "base", tokenizer });
  const ask = async (stop: readonly string[]) => {
    const sampling = { maxNewTokens: 30, temperature: 1, seed: "s", stop };
    const [completion] = await served.generate!([{ prompt, sampling }], live());
    return completion!;
  };
  const whole = await ask([]);
  const stop = /[ -~]/.exec(whole.text)![0];
  const cut = await ask([stop]);
  expect([cut.text, cut.finish]).toEqual([whole.text.slice(0, whole.text.indexOf(stop)), "stop"]);
  expect(cut.ids!.length).toBeLessThan(whole.ids!.length);
});

it.each<[name: string, reply: Fault]>([
  ["llama.cpp, which reads another field", () => ({ tokens: [] })],
  ["llama.cpp with pieces", () => ({ tokens: [{ id: 1, piece: "a" }] })],
  ["text-generation-inference", () => [{ id: 1, text: "a", start: 0, stop: 1 }]],
  ["LM Studio", () => ({ error: "Unexpected endpoint or method." })],
  ["a server that sends a page for any address", { body: "<!doctype html>" }],
  ["a server without it", { status: 404 }],
])("scores nothing with the /tokenize of %s", async (_, reply) => {
  const fault = ({ path }: Received) => (path === "/tokenize" ? reply : null);
  const { url } = await scriptedServer({ model, fault });
  const served = await openAICompatible({ urls: url, model: "base", tokenizer });
  expect([served.logLikelihoods, served.nextToken, served.generate]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

it("generates chats on a server that separates thinking, whose first tokens are no content", async () => {
  const fault = ({ path }: Received) =>
    path === "/v1/chat/completions"
      ? () => ({
          choices: [{ message: { content: null, reasoning_content: "Hm" }, finish_reason: "length" }],
          usage: { prompt_tokens: 3, completion_tokens: 2 },
        })
      : null;
  const { url } = await scriptedServer({ model, fault });
  const served = await openAICompatible({ urls: url, model: "base" });
  const sampling = { maxNewTokens: 2, temperature: 0, seed: "s" };
  const messages = [{ role: "user" as const, content: "Hi" }];
  const [completion] = await served.generate!([{ prompt: { messages }, sampling }], live());
  expect(completion).toMatchObject({ text: "", finish: "length" });
});

it("knows its base by name, by folder and by the last part of its folder", async () => {
  const folder = mkdtempSync(join(tmpdir(), "base-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "tiny"));
  writeFileSync(join(folder, "tiny", "config.json"), "{}");
  const { url } = await scriptedServer({ model });
  const served = await vllm({ urls: url, model: "base", tokenizer });
  for (const base of ["base", "/models/tiny", "owner/Tiny", join(folder, "tiny")])
    expect((await served.openCheckpoint(base)).model.identity.weights).toBe(served.identity.weights);
  await expect(served.openCheckpoint(folder)).rejects.toMatchObject({ code: "model" });
  // A server cannot load another full checkpoint.
  await expect(served.openCheckpoint("base", join(folder, "tiny"))).rejects.toMatchObject({ code: "model" });
});
