import { readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { useBackend } from "@periodic-eval/models";
import { SDPOTrainer } from "@periodic-eval/trainers";
import { OpenAI } from "openai";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { microWorldParts } from "../engine/micro-world.test-data.ts";
import { ask as asked, microWorldService, type Reply } from "./service-client.test-data.ts";
import { serveFeedback, type FeedbackService, type ServeFeedbackOptions } from "./index.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let root = "";
let service: FeedbackService;
const failures: Error[] = [];
const options = () => microWorldService(root, failures);

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  root = join(folder, "adapters");
  service = await serveFeedback(options());
});
afterAll(async () => {
  await service.close();
  expect(failures).toEqual([]);
});

const ask = (path: string, body?: unknown) => asked(service.url, path, body);

const messages = [{ role: "user", content: "What is the colour of the sky?" }];
const chat = { model: "micro-world", messages, max_tokens: 8, seed: 3 };

describe("POST /v1/chat/completions", () => {
  it("answers the official client with tokens and log p, and repeats the answer for the same seed", async () => {
    const client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: "none", maxRetries: 0 });
    const draw = (seed: number) =>
      client.chat.completions.create({
        model: "micro-world",
        messages: [{ role: "user", content: [{ type: "text", text: messages[0]!.content }] }],
        max_completion_tokens: 8,
        temperature: 1,
        top_p: 1,
        seed,
        logprobs: true,
        ...({ return_token_ids: true } as object),
      });
    const answer = await draw(3);
    const [choice] = answer.choices;
    expect(answer).toMatchObject({ object: "chat.completion", model: "micro-world" });
    expect(["stop", "length"]).toContain(choice!.finish_reason);
    const ids = (choice as unknown as { token_ids: number[] }).token_ids;
    expect(ids).toHaveLength(answer.usage!.completion_tokens);
    const content = choice!.logprobs!.content!;
    expect(content.map(({ logprob }) => logprob <= 0)).toEqual(ids.map(() => true));
    expect(content.map(({ token }) => token).join("")).toContain(choice!.message.content);
    expect((await draw(3)).choices).toEqual(answer.choices);
    const others = await Promise.all([4, 5, 6].map(draw));
    expect(others.some(({ choices }) => choices[0]!.message.content !== choice!.message.content)).toBe(true);

    // The score of sampled tokens equals the log p with which they were sampled.
    const prompt = { model: "micro-world", messages, completion_token_ids: ids };
    const { body } = await ask("/v1/score", prompt);
    const scores = body["logprobs"] as number[];
    content.forEach(({ logprob }, at) => expect(scores[at]).toBeCloseTo(logprob, 4));
    const sum = scores.reduce((total, one) => total + one, 0);
    expect(body["logprob_sum"]).toBeCloseTo(sum, 6);
    expect(body).toMatchObject({ n: ids.length, token_ids: ids });
  });

  it("returns the same completions in a batch as one at a time", async () => {
    const other = [{ role: "user", content: "Who are you?" }];
    const { model, max_tokens } = chat;
    const batch = { model, max_tokens, messages: [messages, other], seeds: [3, "named"] };
    const { body } = await ask("/v1/chat/completions/batch", batch);
    const alone = [
      await ask("/v1/chat/completions", chat),
      await ask("/v1/chat/completions", { model, max_tokens, messages: other, seed: "named" }),
    ];
    const texts = (reply: Reply["body"]) =>
      (reply["choices"] as { message: { content: string } }[]).map((one) => one.message.content);
    expect(texts(body)).toEqual(alone.flatMap((one) => texts(one.body)));
    const { status, body: wrong } = await ask("/v1/chat/completions/batch", { ...batch, seeds: [1] });
    expect([status, wrong.error!["message"]]).toEqual([400, expect.stringContaining("each conversation")]);
  });

  it.each([
    [{ stream: true }, "streaming is not supported"],
    [{ n: 2 }, "n: got 2, expected 1"],
    [{ messages: [] }, "messages"],
    [{ messages: [{ role: "tool", content: "x" }] }, "messages[0].role"],
    [
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: "x" }] }] },
      "messages[0].content",
    ],
    [{ tools: [] }, '"tools"'],
    [{ temperature: "hot" }, "temperature"],
    [{ temperature: -1 }, "temperature"],
    [{ top_p: 0 }, "top_p"],
    [{ max_tokens: 0 }, "max_tokens"],
    [{ max_tokens: 1, max_completion_tokens: 1 }, "one of the two"],
    [{ frequency_penalty: 1 }, "frequency_penalty"],
  ])("rejects %j", async (change, message) => {
    const { status, body } = await ask("/v1/chat/completions", { ...chat, ...change });
    expect([status, body.error!["type"]]).toEqual([400, "invalid_request_error"]);
    expect(body.error!["message"]).toContain(message);
  });
});

describe("POST /v1/score", () => {
  const of = (context: object, completion: object) =>
    ask("/v1/score", { model: "micro-world", ...context, ...completion });

  it("returns the same scores in a batch as one at a time, for chats, texts and ids", async () => {
    const requests = [
      { messages, completion: "Blue." },
      { prompt: "The sky is", completion: " blue" },
    ];
    const { body } = await ask("/v1/score", { model: "micro-world", requests });
    const alone = await Promise.all(requests.map((one) => of(one, {})));
    const results = body["results"] as { logprob_sum: number; token_ids: number[] }[];
    results.forEach((one, at) => {
      expect(one.logprob_sum).toBeCloseTo(alone[at]!.body["logprob_sum"] as number, 4);
      expect(one.token_ids).toEqual(alone[at]!.body["token_ids"]);
    });
    const { body: again } = await of({ messages }, { completion_token_ids: results[0]!.token_ids });
    expect(again["logprob_sum"]).toBeCloseTo(results[0]!.logprob_sum, 4);
  });

  it("returns the entropy of the whole distribution after each token except the last", async () => {
    const { body } = await ask("/v1/score", { model: "micro-world", entropies_of: ["The sky is blue."] });
    const [entropies] = body["entropies"] as number[][];
    expect(entropies!.length).toBeGreaterThan(1);
    // Above 0, and below the log of any vocabulary size here.
    entropies!.forEach((nats) => expect(nats > 0 && nats < 12).toBe(true));
  });

  it.each([
    [{ messages }, {}, "one of completion"],
    [{ messages, prompt: "x" }, { completion: "y" }, "one of messages"],
    [{ messages }, { completion: "" }, "at least one token"],
    [{ prompt_token_ids: [-1] }, { completion: "y" }, "prompt_token_ids[0]"],
  ])("rejects %j with %j", async (context, completion, message) => {
    const { status, body } = await of(context, completion);
    expect([status, body.error!["message"]]).toEqual([400, expect.stringContaining(message)]);
  });
});

describe("POST /v1/lora/init and /v1/feedback", () => {
  const training = { learning_rate: 0.001 };
  const init = (lora_id: string, rest: object = {}) =>
    ask("/v1/lora/init", { lora_id, training, steps_per_batch: 1, ...rest });
  const feedbackOn = (response: string, rest: object = {}) => ({
    prompt: messages[0]!.content,
    response,
    feedback: "Shorter.",
    ...rest,
  });
  const sumOf = async (model: string) =>
    (await ask("/v1/score", { model, messages, completion: "Blue." })).body["logprob_sum"];

  it("starts an adapter with the base's scores, trains each step once, and keeps it after a restart", async () => {
    expect(await init("first")).toEqual({
      status: 200,
      body: { lora_id: "first", updates: 0, last: null },
    });
    expect(await sumOf("first")).toBe(await sumOf("micro-world"));
    const step = {
      lora_id: "first",
      step_id: "a",
      step: 0,
      draft: { of: "a" },
      requests: [feedbackOn("Blue.")],
    };
    const done = await ask("/v1/feedback", step);
    expect(done).toMatchObject({
      status: 200,
      body: { status: "ok", batch_size: 1, lora_id: "first", updates: 1 },
    });
    expect(done.body["last"]).toMatchObject({ step_id: "a", step: 0, draft: { of: "a" }, sub_steps: 1 });
    const trained = await sumOf("first");
    expect(trained).not.toBe(await sumOf("micro-world"));

    expect(await ask("/v1/feedback", step)).toEqual(done);
    expect(await sumOf("first")).toBe(trained);
    const early = await ask("/v1/feedback", { ...step, step_id: "c", step: 2 });
    expect(early.status).toBe(409);
    expect(early.body.error).toMatchObject({ code: "step_out_of_order" });

    await service.close();
    await expect(fetch(`${service.url}/v1/health`)).rejects.toThrow();
    service = await serveFeedback(options());
    expect((await ask("/v1/health")).body["adapters"]).toEqual(["first"]);
    expect(await sumOf("first")).toBe(trained);
    expect((await init("first")).body).toMatchObject({ updates: 1, last: done.body["last"] });
    expect(await ask("/v1/feedback", step)).toEqual(done);
  });

  it("rejects a different update with the last step_id, even after a restart", async () => {
    await init("named");
    const step = (rest: object) => ({
      lora_id: "named",
      step_id: "s1",
      requests: [feedbackOn("Blue.")],
      ...rest,
    });
    const done = await ask("/v1/feedback", step({}));
    const trained = await sumOf("named");
    const others = [
      { requests: [feedbackOn("Green.")] },
      { requests: [{ ...feedbackOn("Blue."), feedback: "Longer." }] },
      { requests: [feedbackOn("Blue."), feedbackOn("Blue.")] },
      { step: 1 },
    ];
    const expectRejections = async () => {
      for (const other of others) {
        const { status, body } = await ask("/v1/feedback", step(other));
        expect([status, body.error?.["code"]]).toEqual([409, "step_differs"]);
      }
      expect(await ask("/v1/feedback", step({ step: 0 }))).toEqual(done);
      expect(await sumOf("named")).toBe(trained);
    };
    await expectRejections();
    await service.close();
    service = await serveFeedback(options());
    await expectRejections();
  });

  it("trains a step with a number but no step_id once", async () => {
    await init("numbered");
    const step = { lora_id: "numbered", step: 0, requests: [feedbackOn("Blue.")] };
    const done = await ask("/v1/feedback", step);
    expect(done.body["updates"]).toBe(1);
    expect(await ask("/v1/feedback", step)).toEqual(done);
    const { status } = await ask("/v1/feedback", { ...step, requests: [feedbackOn("Green.")] });
    expect(status).toBe(409);
  });

  it("trains once if two equal requests arrive together, and rolls back an update that it cannot save", async () => {
    const step = (lora_id: string) => ({ lora_id, step_id: "a", step: 0, requests: [feedbackOn("Blue.")] });
    await init("twice");
    const both = await Promise.all([1, 2].map(() => ask("/v1/feedback", step("twice"))));
    expect(both[0]).toMatchObject({ status: 200, body: { updates: 1 } });
    expect(both[1]).toEqual(both[0]);

    await init("unkept");
    const full = new Error("no space left on /secret/path");
    const save = vi.spyOn(SDPOTrainer.prototype, "save").mockRejectedValueOnce(full);
    const failed = await ask("/v1/feedback", step("unkept"));
    save.mockRestore();
    expect([failed.status, failed.body.error!["message"]]).toEqual([
      500,
      "[periodic-eval] the service failed",
    ]);
    expect(failures.splice(0)).toEqual([full]);
    expect(await sumOf("unkept")).toBe(await sumOf("micro-world"));
    const { body } = await ask("/v1/feedback", step("unkept"));
    expect(body["last"]).toEqual(both[0]!.body["last"]);
    expect(await sumOf("unkept")).toBe(await sumOf("twice"));
  });

  it("accepts the field names of kfallah/CLaaS, and computes missing log p with the weights before the update", async () => {
    await init("second");
    await init("third");
    await init("guessed");
    const claas = (id: string, rest: object) => ({
      requests: [feedbackOn("Blue.", { lora_id: id, training, ...rest })],
    });
    const { body } = await ask("/v1/score", { model: "second", messages, completion: "Blue." });
    const scored = {
      response_token_ids: body["token_ids"] as number[],
      response_logprobs: body["logprobs"] as number[],
    };
    const [hidden, all, guessed] = [
      await ask("/v1/feedback", claas("second", {})),
      await ask("/v1/feedback", claas("third", scored)),
      // Log p without token ids.
      await ask(
        "/v1/feedback",
        claas("guessed", { response_logprobs: scored.response_logprobs.map(() => -9) }),
      ),
    ];
    expect([hidden.status, all.status, guessed.status]).toEqual([200, 200, 200]);
    const metrics = ({ body: reply }: Reply) => (reply["last"] as { metrics: object }).metrics;
    expect(metrics(hidden)).toEqual(metrics(all));
    expect(metrics(guessed)).toEqual(metrics(all));
    expect(metrics(all)).toMatchObject({ mean_is_ratio: expect.closeTo(1, 4) as number });
    expect((await ask("/v1/feedback", claas("second", { training: { alpha: 1 } }))).status).toBe(409);
  });

  it("rejects an adapter with other settings, another base model or the base model's name", async () => {
    await init("fourth");
    expect((await init("fourth")).status).toBe(200);
    for (const [id, rest, code] of [
      ["fourth", { seed: 7 }, "adapter_differs"],
      ["fourth", { training: { learning_rate: 0.002 } }, "adapter_differs"],
      ["fifth", { base_model: "other" }, "adapter_differs"],
      ["micro-world", {}, "adapter_differs"],
    ] as const) {
      const { status, body } = await init(id, rest);
      expect([status, body.error!["code"]]).toEqual([409, code]);
    }
    const { status, body } = await init("fifth", { training: { learning_rat: 1 } });
    expect(status).toBe(400);
    expect(body.error!["message"]).toContain('"learning_rat"');
    expect(body.error!["message"]).toContain('Did you mean "learning_rate"?');
  });

  it.each([
    "../outside",
    "..",
    ".",
    "",
    "/etc",
    "a/b",
    "a\\b",
    "%2e%2e%2foutside",
    "a\u0000",
    ".hidden",
    "a".repeat(129),
    "ａ",
  ])("rejects the adapter name %j, which is not a plain file name", async (hostile) => {
    await writeFile(join(folder, "adapter.json"), JSON.stringify({ lora_id: hostile }));
    const before = await readdir(folder);
    const feedback = { lora_id: hostile, requests: [feedbackOn("x")] };
    expect((await init(hostile)).status).toBe(400);
    expect((await ask("/v1/feedback", feedback)).status).toBe(400);
    const { status, body } = await ask("/v1/chat/completions", { ...chat, model: hostile });
    expect(status).toBe(hostile === "" ? 400 : 404);
    if (hostile !== "") expect(body.error).toMatchObject({ code: "model_not_found" });
    expect(await readdir(folder)).toEqual(before);
  });

  it("rejects an adapter that was trained on another model", async () => {
    const elsewhere = join(folder, "other", "sixth");
    const other = await serveFeedback({
      ...options(),
      describe: { model: "another" },
      root: join(folder, "other"),
    });
    await fetch(`${other.url}/v1/lora/init`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ lora_id: "sixth" }),
    });
    await other.close();
    await symlink(elsewhere, join(root, "sixth"));
    expect((await ask("/v1/chat/completions", { ...chat, model: "sixth" })).status).toBe(409);
    await rm(join(root, "sixth"));
  });

  it.each([
    [{ requests: [] }, 400],
    [{ lora_id: "unheard", requests: [feedbackOn("x")] }, 404],
    [{ requests: [feedbackOn("x")] }, 400],
    [{ requests: [feedbackOn("x", { lora_id: "a" }), feedbackOn("x", { lora_id: "b" })] }, 400],
    [{ lora_id: "first", requests: [feedbackOn("x", { response_token_ids: [10 ** 9] })] }, 400],
    [
      { lora_id: "first", requests: [feedbackOn("x", { response_token_ids: [1], response_logprobs: [] })] },
      400,
    ],
    [{ lora_id: "first", requests: [feedbackOn("x", { response_logprobs: [1] })] }, 400],
    [{ lora_id: "first", requests: [feedbackOn("x", { training: { learning_rat: 1 } })] }, 400],
    [{ lora_id: "first", requests: [feedbackOn("x", { training: { constructor: 1 } })] }, 400],
    [{ lora_id: "first", step_id: "z", requests: [feedbackOn("")] }, 422],
  ])("rejects %j without training", async (body, expected) => {
    const before = (await init("first")).body["updates"];
    const { status, body: reply } = await ask("/v1/feedback", body);
    expect([status, typeof reply.error!["message"]]).toEqual([expected, "string"]);
    expect((await init("first")).body["updates"]).toBe(before);
  });
});

it("stops work for a client that disconnects, and serves the next one", async () => {
  // The model opens after both clients have disconnected. Until then the first request waits for it, and the second is queued.
  const asked: string[] = [];
  let release = () => {};
  const released = new Promise<void>((done) => void (release = done));
  const parts: Pick<ServeFeedbackOptions, "openModel" | "describe"> = {
    ...microWorldParts,
    async openModel(adapter) {
      asked.push("opened");
      await released;
      return microWorldParts.openModel(adapter);
    },
  };
  const slow = await serveFeedback({ ...options(), ...parts, root: join(folder, "slow") });
  const [first, second] = [new AbortController(), new AbortController()];
  const send = (signal: AbortSignal) =>
    fetch(`${slow.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(chat),
      signal,
    });
  const sent = [first, second].map(({ signal }) => send(signal).then(String, (error: Error) => error.name));
  await vi.waitFor(() => expect(asked).toEqual(["opened"]), 60_000);
  first.abort();
  second.abort();
  expect(await Promise.all(sent)).toEqual(["AbortError", "AbortError"]);
  release();
  expect((await send(new AbortController().signal)).status).toBe(200);
  await slow.close();
});
