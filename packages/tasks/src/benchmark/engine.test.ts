import { measure, PeriodicEvalError, withSession, type EvaluableModel } from "@periodic-eval/core";
import { fakeModel, memoryStore } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { benchmarkFolder } from "./benchmark-folder.test-data.ts";
import { benchmarkEvaluation } from "./benchmark-evaluation.ts";
import { BenchmarkEvaluator } from "./benchmark-evaluator.ts";
import type { BenchmarkEngine, EngineFunction, EnginePrompt, EngineSampling } from "./engine.ts";
import { measured, reply } from "./sums.test-data.ts";

/** Answers sums as a plain function. */
const adder: EngineFunction = async function adder(prompts) {
  return prompts.map(({ messages }) => reply(messages.at(-1)!.content));
};

/** A model that must not be asked. */
const untouched = (): EvaluableModel => ({
  ...fakeModel(),
  generate: () => Promise.reject(new Error("the live model was asked")),
});

describe("an engine", () => {
  it("as a plain function answers instead of the model, and the provenance names it", async () => {
    const { snapshot, rows } = await measured({ engine: adder }, untouched());
    expect(snapshot.metrics["pass_rate"]).toEqual((await measured({})).snapshot.metrics["pass_rate"]);
    expect(snapshot).toMatchObject({ engine: "adder", truncated: null });
    expect(snapshot.provenance.evaluation).toMatchObject({
      engine: { name: "adder", engine: "custom", dtype: "unknown", adapter: null },
    });
    // A function returns texts only: what it does not say is unknown.
    expect(rows[0]!.completions[0]).toMatchObject({
      ids: null,
      finish: null,
      inputTokens: null,
      outputTokens: null,
    });
    expect(snapshot["usage"]).toMatchObject({
      unknown: 6,
      input_tokens: null,
      output_tokens: null,
      cost: null,
    });
  });

  it("is named with its tasks if it throws", async () => {
    const cause = new TypeError("no such field");
    const failing: EngineFunction = function mine() {
      throw cause;
    };
    await expect(measured({ engine: failing }, untouched())).rejects.toMatchObject({
      code: "model",
      where: expect.stringMatching(
        /^benchmark "sums", tasks "[^"]+", "[^"]+", "[^"]+", and 3 more: engine "mine"$/,
      ),
      got: 'the error "no such field" thrown by your code',
      cause,
    });
  });

  it("may report only one count of its usage: the other is null", async () => {
    const half: EngineFunction = (prompts) => prompts.map(() => ({ text: "2", usage: { outputTokens: 3 } }));
    const { snapshot, rows } = await measured({ engine: half, limit: 1 }, untouched());
    expect(rows[0]!.completions[0]).toMatchObject({ inputTokens: null, outputTokens: 3 });
    expect(snapshot["usage"]).toMatchObject({ unknown: 1, input_tokens: null, output_tokens: 3 });
  });

  it("as a function receives chats with the system message, and the sampling", async () => {
    const calls: { readonly prompts: readonly EnginePrompt[]; readonly sampling: EngineSampling }[] = [];
    const engine: EngineFunction = (prompts, sampling) => {
      calls.push({ prompts, sampling });
      return prompts.map(() => ({
        text: "2",
        finish: "length",
        ids: [7],
        usage: { inputTokens: 3, outputTokens: 1 },
      }));
    };
    const { rows, snapshot } = await measured(
      {
        engine,
        limit: 1,
        numSamples: 2,
        temperature: 0.5,
        maxTokens: 9,
        chatTemplate: { systemPrompt: "Add.", enableThinking: false },
      },
      untouched(),
    );
    expect(calls).toHaveLength(1);
    expect(calls[0]!.prompts).toEqual(
      Array.from({ length: 2 }, () => ({
        messages: [
          { role: "system", content: "Add." },
          { role: "user", content: "1 + 1 =" },
        ],
        templateKwargs: { enable_thinking: false },
      })),
    );
    const { signal, seeds, ...sampling } = calls[0]!.sampling;
    expect(sampling).toEqual({ maxNewTokens: 9, temperature: 0.5 });
    expect([signal.aborted, new Set(seeds).size]).toEqual([false, 2]);
    expect(rows[0]!.completions[0]).toMatchObject({
      ids: [7],
      finish: "length",
      inputTokens: 3,
      outputTokens: 1,
    });
    expect(snapshot["truncated"]).toBe(2);
  });

  it("as an object with `generate`, or as a model, answers with its identity", async () => {
    class Served {
      readonly identity = { name: "served-7", engine: "vllm", weights: "abc" };
      readonly #reply = reply;
      generate(requests: readonly { readonly prompt: object }[]) {
        const last = ({ prompt }: { readonly prompt: object }) =>
          (prompt as { readonly messages: readonly { readonly content: string }[] }).messages.at(-1)!.content;
        return requests.map((request) => this.#reply(last(request)));
      }
    }
    const own = await measured({ engine: new Served() as BenchmarkEngine }, untouched());
    expect(own.snapshot).toMatchObject({ engine: "served-7", engine_weights: "abc" });
    expect(own.snapshot.provenance.evaluation).toMatchObject({
      engine: { name: "served-7", engine: "vllm", dtype: "unknown", adapter: null },
    });
    const model = fakeModel({ reply, identity: { name: "other" } });
    const other = await measured({ engine: model }, untouched());
    expect(other.snapshot).toMatchObject({ engine: "other", truncated: 0 });
    expect(other.snapshot.metrics).toEqual(own.snapshot.metrics);
    expect(other.rows[0]!.completions[0]!.inputTokens).toBeGreaterThan(0);
  });

  it("that serves other weights at each step is compared with its baseline", async () => {
    let step = 0;
    const engine: BenchmarkEngine = {
      get identity() {
        return { name: "served", weights: `step ${step}` };
      },
      generate: (requests) => requests.map(() => (step === 0 ? "3" : "2")),
    };
    const tasks = [1, 2, 3].map((n) => ({
      id: `${n}`,
      prompt: "1 + 1 =",
      answer: 2,
      split: "val",
      verifier: "numeric",
    }));
    const evaluator = new BenchmarkEvaluator({
      name: "sums",
      benchmark: await benchmarkFolder({ tasks }),
      runEvery: 1,
      engine,
    });
    const run = memoryStore();
    await withSession(
      { run, maxSteps: 1, model: untouched(), callbacks: [evaluator], loggers: [] },
      async (open) => {
        await open.begin();
        step = 1;
        await open.stepEnd();
      },
    );
    const snapshots = await run.list();
    expect(snapshots.map((one) => one["engine_weights"])).toEqual(["step 0", "step 1"]);
    expect(snapshots[1]!.paired.baseline!["pass_rate"]).toMatchObject({ n_pairs: 3, delta: 1 });
  });

  it("reports the weights that answered, although they change while answers are graded", async () => {
    let weights = "that answered";
    const engine: BenchmarkEngine = {
      get identity() {
        return { name: "served", weights };
      },
      generate: (requests) => requests.map(() => "2"),
    };
    const tasks = [{ id: "a", prompt: "1 + 1 =", answer: 2, split: "val", verifier: "numeric" }];
    const evaluation = benchmarkEvaluation({
      name: "sums",
      benchmark: await benchmarkFolder({ tasks }),
      engine,
    });
    const changing = {
      ...evaluation,
      grade: (...given: Parameters<NonNullable<typeof evaluation.grade>>) => {
        weights = "of a later step";
        return evaluation.grade!(...given);
      },
    };
    const { snapshot } = await measure(changing, untouched());
    expect(snapshot).toMatchObject({ engine_weights: "that answered" });
  });

  it("is checked before step 1, and answers in the loop and in `evaluate` without a model", async () => {
    const tasks = ["val", "test"].map((split) => ({
      id: split,
      prompt: "1 + 1 =",
      answer: 2,
      split,
      verifier: "numeric",
    }));
    const benchmark = await benchmarkFolder({ tasks });
    const options = { name: "sums", benchmark, runEvery: 1 };
    const evaluator = new BenchmarkEvaluator({ ...options, engine: adder });
    const run = memoryStore();
    const session = { run, maxSteps: 1, model: untouched(), callbacks: [evaluator], loggers: [] };
    await withSession(session, (open) => open.stepEnd());
    expect((await run.list()).map(({ step, metrics }) => [step, metrics["pass_rate"]!.value])).toEqual([
      [0, 1],
      [1, 1],
    ]);
    const { snapshot } = await evaluator.measure();
    expect(snapshot).toMatchObject({ status: "complete", split: "test", engine: "adder" });
    expect(snapshot.metrics["pass_rate"]!.value).toBe(1);
    await expect(new BenchmarkEvaluator(options).evaluate()).rejects.toMatchObject({
      code: "config",
      got: "no model",
    });

    const down = { ...fakeModel(), check: () => Promise.reject(new Error("the engine is down")) };
    const failing = new BenchmarkEvaluator({ ...options, engine: down });
    await expect(
      withSession({ ...session, run: memoryStore(), callbacks: [failing] }, (open) => open.stepEnd()),
    ).rejects.toThrow("the engine is down");
  });
});

it.each<"" | null>(["", null])("%j is the measured model", async (engine) => {
  const tasks = [{ id: "a", prompt: "1 + 1 =", answer: 2, split: "test", verifier: "numeric" }];
  const evaluator = new BenchmarkEvaluator({
    name: "sums",
    benchmark: await benchmarkFolder({ tasks }),
    engine,
  });
  const { snapshot } = await evaluator.measure(fakeModel({ reply: () => "2" }));
  expect(snapshot.metrics["pass_rate"]!.value).toBe(1);
  expect(snapshot).not.toHaveProperty("engine");
});

it("refuses values that are no engine", async () => {
  for (const engine of ["harbor", {}, 3]) {
    const made = () => new BenchmarkEvaluator({ name: "sums", benchmark: "sums", engine: engine as never });
    expect(made).toThrow(PeriodicEvalError);
    expect(made).toThrow("BenchmarkEvaluator options.engine");
  }
});

it.each<readonly [reply: (prompts: readonly EnginePrompt[]) => unknown, where: string, got: string]>([
  [() => "4", 'engine "bad": completions', '"4"'],
  [() => undefined, 'engine "bad": completions', "undefined"],
  [() => ["4"], 'engine "bad"', "1 completions for 6 prompts"],
  [(prompts) => prompts.map((_, at) => (at === 2 ? 4 : "4")), 'engine "bad": completions[2]', "4"],
  [(prompts) => prompts.map(() => ({ answer: "4" })), 'engine "bad": completions[0].text', "undefined"],
  [
    (prompts) => prompts.map(() => ({ text: "4", finish: "eos" })),
    'engine "bad": completions[0].finish',
    '"eos"',
  ],
  [
    (prompts) => prompts.map(() => ({ text: "4", usage: { inputTokens: -1, outputTokens: 1 } })),
    'engine "bad": completions[0].usage.inputTokens',
    "-1",
  ],
])("reports the place of a wrong reply (%#)", async (answer, where, got) => {
  const bad = (prompts: readonly EnginePrompt[]) => answer(prompts) as never;
  await expect(measured({ engine: bad }, untouched())).rejects.toMatchObject({ code: "model", where, got });
});
