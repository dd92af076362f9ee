// Compares models of @huggingface/transformers with this library's engine, on ONNX exports of the embedded model and of fixtures.
import type { EvaluableModel, GenerateRequest, Tokenizer } from "@periodic-eval/core";
import { inMemory, type TransformersTokenizer } from "@periodic-eval/tfjs";
import { modelConformance } from "@periodic-eval/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import { float32Fixtures } from "../testing/fixtures.test-data.ts";
import {
  exported,
  hasTransformers,
  importPeer,
  loadOnnx,
  microWorld,
  needsTransformers,
} from "../testing/onnx.test-data.ts";
import { charTokenizer } from "../tokenizer/char-tokenizer.ts";
import { loadTokenizer } from "../tokenizer/load-tokenizer.ts";
import { fromTransformers } from "./from-transformers.ts";
import type { TransformersModel } from "./onnx-model.ts";

const call = () => ({ signal: new AbortController().signal });
const chars = (count: number) => Array.from({ length: count }, (_, at) => String.fromCodePoint(0x4e00 + at));
const asked = (content: string) => ({ messages: [{ role: "user", content }] });

/** Requests of very different lengths, so that batches are padded. */
const requests = [
  { context: asked("My soup is too salty. What would you do?"), continuation: "Add some water." },
  { context: asked("Hi"), continuation: "Hello there, my friend." },
  { context: { text: "The lake" }, continuation: " is deep" },
  { context: { text: "The lake" }, continuation: " is deep and the water is cold" },
  { context: { text: "" }, continuation: "The" },
  // Long contexts with short continuations are read once, then token by token.
  ...["Burn it.", "Burn", "Hold ice to it.", "7", "70", "100"].map((continuation) => ({
    context: asked("My soup is too salty. What would you do? ".repeat(4)),
    continuation,
  })),
];
const prompts = requests
  .slice(0, 5)
  .map(({ context }) => context)
  .filter((one) => !("text" in one && one.text === ""));
const generations = (temperature: number): GenerateRequest[] =>
  prompts.map((prompt, at) => ({ prompt, sampling: { maxNewTokens: 12 + at, temperature, seed: `s${at}` } }));

/** Every answer of a model to the requests above. */
const answersOf = async (lm: EvaluableModel) => ({
  scored: await lm.logLikelihoods!(
    requests.map((request) => ({ ...request, greedyIds: true })),
    call(),
  ),
  next: await lm.nextToken!(
    prompts.map((prompt) => ({ prompt, candidates: [3, 40, 500] })),
    call(),
  ),
  written: [...(await lm.generate!(generations(0), call())), ...(await lm.generate!(generations(1), call()))],
});
type Answers = Awaited<ReturnType<typeof answersOf>>;

function expectEqual(actual: Answers, expected: Answers): void {
  const near = (nats: readonly number[], others: readonly number[]) => {
    expect(nats.length).toBe(others.length);
    nats.forEach((value, at) => expect(Math.abs(value - others[at]!)).toBeLessThan(1e-3));
  };
  actual.scored.forEach(({ tokenNats, isGreedy, tokenIsGreedy, tokenGreedyIds }, at) => {
    near(tokenNats, expected.scored[at]!.tokenNats);
    expect([isGreedy, tokenIsGreedy, tokenGreedyIds]).toEqual([
      expected.scored[at]!.isGreedy,
      expected.scored[at]!.tokenIsGreedy,
      expected.scored[at]!.tokenGreedyIds,
    ]);
    expect(tokenGreedyIds!.length).toBe(tokenNats.length);
  });
  actual.next.forEach(({ nats, entropyNats }, at) =>
    near([...nats, entropyNats!], [...expected.next[at]!.nats, expected.next[at]!.entropyNats!]),
  );
  actual.written.forEach(({ tokenNats, ...rest }, at) => {
    const { tokenNats: others, ...same } = expected.written[at]!;
    expect(rest).toEqual(same);
    near(tokenNats!, others!);
  });
}

describe.skipIf(!hasTransformers)(`fromTransformers (${needsTransformers})`, () => {
  let tokenizer: Tokenizer;
  let expected: Answers;
  let folder: string;
  let model: TransformersModel;
  const endings: (() => unknown)[] = [];
  const after = (end: () => unknown) => void endings.push(end);
  afterAll(async () => void (await Promise.all(endings.map((end) => end()))));
  beforeAll(async () => {
    await useBackend({ backend: "wasm" });
    tokenizer = await loadTokenizer(microWorld);
    const lm = await loadCausalLM(microWorld);
    expected = await answersOf(inMemory(lm, tokenizer));
    lm.dispose();
    folder = await exported(microWorld, {}, after);
    model = await loadOnnx(folder, after);
  });

  it.each([
    ["padded", null, {}],
    ["of one row", null, { batching: "single" as const }],
    ["small", null, { maxBatchTokens: 24 }],
    ["of a graph that keeps the last logits", { logitsToKeep: true }, {}],
    ["of a graph without position ids", { positionIds: false }, {}],
  ])("equals inMemory in scores and completions, with batches %s", async (_, graph, options) => {
    const given = graph === null ? model : await loadOnnx(await exported(microWorld, graph));
    const lm = fromTransformers(tokenizer, given, options);
    await lm.check!(call());
    expectEqual(await answersOf(lm), expected);
  });

  describe("passes the conformance suite", () => {
    for (const check of modelConformance(() => fromTransformers(tokenizer, model))) it(check.name, check.run);
  });

  it("describes the model, and counts tokens without padding", async () => {
    const lm = fromTransformers(tokenizer, model, { name: "judge" });
    const identity = { name: "judge", engine: "transformers.js-cpu", dtype: "fp32", weights: null };
    expect(lm.identity).toMatchObject(identity);
    expect(lm.contextLength).toBe(256);
    let counted = 0;
    const asks = [[1, 2, 3], [1, 2], [9]].map((ids) => ({ prompt: { ids }, candidates: [1] }));
    await lm.nextToken(asks, { ...call(), countTokens: (tokens) => (counted += tokens) });
    // [1, 2] is read as part of [1, 2, 3].
    expect(counted).toBe(4);
  });

  it("takes an AutoTokenizer, and so does inMemory", async () => {
    const { AutoTokenizer } = await importPeer();
    const auto = (await AutoTokenizer.from_pretrained(folder)) as TransformersTokenizer & {
      chat_template: string;
    };
    // The package does not read chat_template.jinja.
    const chat = { prompt: asked("Hi"), candidates: [1] };
    const noTemplate = { code: "model", where: "the AutoTokenizer" };
    await expect(fromTransformers(auto, model).nextToken([chat], call())).rejects.toMatchObject(noTemplate);
    auto.chat_template =
      "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";
    const lm = fromTransformers(auto, model);
    expectEqual(await answersOf(lm), expected);
    for (const text of ["The lake is deep.", "", "Ünï ☃", "<|end|>"]) {
      expect(lm.tokenizer.encode(text)).toEqual(tokenizer.encode(text));
      expect(lm.tokenizer.decode(tokenizer.encode(text))).toBe(tokenizer.decode(tokenizer.encode(text)));
    }
    expect(lm.tokenizer.vocabSize).toBe(tokenizer.vocabSize);
    const talk = [...asked("Hi").messages, { role: "assistant", content: "Hello " }];
    for (const ending of ["generation", "continue", "complete"] as const) {
      const prompt = { messages: talk, system: { text: "Be kind." } };
      expect(lm.tokenizer.render(prompt, { ending })).toEqual(tokenizer.render(prompt, { ending }));
    }
    const ours = await loadCausalLM(microWorld);
    const [scored] = await inMemory(ours, auto).logLikelihoods(requests, call());
    expect(scored!.sumNats).toBeCloseTo(expected.scored[0]!.sumNats, 5);
    ours.dispose();
  });

  it.each(
    float32Fixtures("llama").filter(({ name }) => name === "llama-tied" || name === "llama-gqa-untied"),
  )("scores the fixture $name as this library's engine does", async (fixture) => {
    const ours = await loadCausalLM(fixture.folder);
    const characters = charTokenizer(chars(fixture.config["vocab_size"] as number));
    const pairs = [3, 40, 17].map((length, at) => ({
      context: { ids: Array.from({ length }, (_, i) => (7 * i * (at + 1) + at) % 512) },
      continuation: { ids: [5, 300, 11].slice(at) },
    }));
    const lm = fromTransformers(characters, await loadOnnx(await exported(fixture.folder)));
    const theirs = await lm.logLikelihoods(pairs, call());
    const own = await inMemory(ours, characters).logLikelihoods(pairs, call());
    theirs.forEach(({ sumNats }, at) => expect(Math.abs(sumNats - own[at]!.sumNats)).toBeLessThan(1e-3));
    ours.dispose();
  });

  it("cuts contexts to the context length, and completions end there", async () => {
    const lm = fromTransformers(tokenizer, model, { contextLength: 8 });
    const ids = Array.from({ length: 9 }, (_, at) => at + 1);
    const [cut] = await lm.logLikelihoods([{ context: { ids }, continuation: { ids: [4] } }], call());
    expect(cut!.truncatedTokens).toBe(1);
    const sampling = { maxNewTokens: 50, temperature: 0, seed: "" };
    const requested = [3, 7, 8].map((length) => ({ prompt: { ids: ids.slice(0, length) }, sampling }));
    const room = [6, 2, 1];
    (await lm.generate(requested, call())).forEach(({ finish, ids: written }, at) => {
      expect(written!.length).toBeLessThanOrEqual(room[at]!);
      if (finish === "length") expect(written!.length).toBe(room[at]!);
    });
    await expect(lm.generate([{ prompt: { ids }, sampling }], call())).rejects.toMatchObject({
      code: "data",
    });
    const long = { context: { ids: [1] }, continuation: { ids } };
    await expect(lm.logLikelihoods([long], call())).rejects.toMatchObject({ code: "data" });
  });

  it.each([
    ["an id outside of the vocabulary", [1024], [1], { code: "model", got: "the id 1024" }],
    ["a candidate outside of it", [1], [-1], { code: "model", got: "the id -1" }],
    ["no candidates", [1], [], { code: "data", where: "nextToken" }],
  ])("throws for %s", async (_, ids, candidates, error) => {
    const lm = fromTransformers(tokenizer, model);
    await expect(lm.nextToken([{ prompt: { ids }, candidates }], call())).rejects.toMatchObject(error);
  });

  it("stops when it is aborted", async () => {
    const signal = AbortSignal.abort(new Error("stop"));
    const asks = [{ prompt: { ids: [1] }, candidates: [1] }];
    await expect(fromTransformers(tokenizer, model).nextToken(asks, { signal })).rejects.toMatchObject({
      code: "aborted",
    });
  });
});

describe("fromTransformers refuses", () => {
  const session = { inputNames: ["input_ids"], outputNames: ["logits"] };
  const model = (config: object, sessions: object = { model: session }): TransformersModel => ({
    config: { vocab_size: 100, ...config },
    sessions,
    forward: async () => ({}),
  });
  const fitting = charTokenizer(chars(90));
  it.each([
    [
      "a promise as model",
      Promise.resolve() as never,
      fitting,
      { code: "config", path: ["model"], got: "a promise" },
    ],
    [
      "a path as model",
      "folder" as never,
      fitting,
      { code: "config", path: ["model"], got: "a value of type string" },
    ],
    [
      "an encoder-decoder model",
      model({ is_encoder_decoder: true, model_type: "t5" }),
      fitting,
      { code: "model", where: "fromTransformers, model type t5", got: "an encoder-decoder model" },
    ],
    [
      "a model without logits",
      model({}, { model: { ...session, outputNames: ["last_hidden_state"] } }),
      fitting,
      { code: "model", got: "a model with the outputs last_hidden_state" },
    ],
    [
      "a tokenizer with too many tokens",
      model({}),
      charTokenizer(chars(101)),
      { code: "model", got: "a tokenizer of 101 tokens for a model with a vocabulary of 100" },
    ],
    [
      "a tokenizer with too few tokens",
      model({}),
      charTokenizer(chars(50)),
      { code: "model", got: "a tokenizer of 50 tokens for a model with a vocabulary of 100" },
    ],
    ["a model as tokenizer", model({}), model({}) as never, { code: "config", path: ["tokenizer"] }],
    [
      "a promise as tokenizer",
      model({}),
      Promise.resolve(fitting) as never,
      { code: "config", path: ["tokenizer"], got: "a promise" },
    ],
  ])("%s", (_, given, own, expected) => {
    expect(() => fromTransformers(own, given)).toThrow(expect.objectContaining(expected));
  });

  it("a wrong option", () => {
    expect(() => fromTransformers(fitting, model({}), { maxBatchTokens: 0 })).toThrow(
      expect.objectContaining({ code: "config", path: ["maxBatchTokens"] }),
    );
  });
});
