import { measure, type EvaluableModel } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CallSampling } from "../families/evaluate-options.ts";
import { rolloutEvaluation } from "../families/rollout.ts";
import { choiceTask, fakeTrainer, otherTokenizerTrainer, replyTask } from "../suite/fake-tasks.test-data.ts";
import type { SampledTask } from "../tasks/task.ts";
import { Evaluator } from "./evaluator.ts";
import type { EvaluatorOptions } from "./evaluator-options.ts";

let folder: string;
let results: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "call-time-"));
  results = join(folder, "results");
});
afterEach(() => rm(folder, { recursive: true }));

/** A task that generates with `rolloutEvaluation`, as gsm8k does. `before` runs before each score. */
function sumsTask(before: () => void = () => {}): SampledTask {
  const documents = [1, 2, 3].map((n) => ({ id: String(n), question: `${n}+${n}=` }));
  return {
    name: "sums",
    version: "1.0",
    defaultShots: 0,
    settings: { output_type: "generate_until", max_gen_toks: 4, until: [], do_sample: false, temperature: 0 },
    open: () =>
      rolloutEvaluation({
        name: "sums",
        documents,
        prompt: ({ question }) => question,
        maxNewTokens: 4,
        score: (_, text) => {
          before();
          return text.length;
        },
      }),
  };
}

const suite = (...names: readonly string[]) => ({
  schema_version: 1 as const,
  name: "own",
  tasks: Object.fromEntries(names.map((name) => [name, {}])),
});
const tasks = () => ({ choices: choiceTask(), sums: sumsTask() });
const options = (given: Partial<EvaluatorOptions> = {}): EvaluatorOptions => ({
  name: "sft",
  tasks: tasks(),
  suite: suite("choices", "sums"),
  results,
  ...given,
});
const evaluator = (given: Partial<EvaluatorOptions> = {}, trainer = fakeTrainer()) =>
  Evaluator.fromTrainer(trainer, options(given));
const sampling: CallSampling = {
  temperature: 0.7,
  topP: 0.9,
  maxNewTokens: 12,
  samplesPerPrompt: 4,
  seed: 7,
};

describe("evaluate(reduce, …)", () => {
  it("returns each task's mean, sum or samples, of a trainer's live weights, and writes nothing", async () => {
    const one = evaluator();
    const mean = await one.evaluate();
    const none = await one.evaluate({ reduce: "none" });
    expect(Object.keys(mean)).toEqual(["choices", "sums"]);
    expect([none["choices"]!.length, none["sums"]!.length]).toEqual([15, 3]);
    const total = (values: readonly (number | null)[]) =>
      values.reduce<number>((sum, value) => sum + value!, 0);
    for (const name of ["choices", "sums"])
      expect(mean[name]).toBeCloseTo(total(none[name]!) / none[name]!.length, 12);
    expect(await one.evaluate({ reduce: "sum" })).toEqual({
      choices: total(none["choices"]!),
      sums: total(none["sums"]!),
    });
    for (const reduce of ["mean", "sum", "none"] as const) {
      expect(await one.evaluate(reduce)).toEqual(await one.evaluate({ reduce }));
      const drawn = await evaluator({ suite: suite("sums") }).evaluate(reduce, {
        ...sampling,
        returnIntermediates: true,
      });
      expect(drawn["sums"]!.value).toEqual((await one.evaluate({ reduce, ...sampling }))["sums"]);
    }
    await expect(one.evaluate({ returnIntermediates: true })).rejects.toMatchObject({
      path: ["returnIntermediates"],
      got: 'true for "choices", which does not report its tokens',
    });
    await expect(readdir(results)).rejects.toThrow("ENOENT");
    const { run } = await one.run();
    expect(mean).toEqual({ choices: run.metrics["choices/acc,none"], sums: run.metrics["sums/score,none"] });
  });

  it("opens a checkpoint, and disposes it", async () => {
    const log: string[] = [];
    const model: EvaluableModel = fakeModel({ weights: () => "w" });
    const [saved] = Evaluator.fromCheckpoint("path/to/model", {
      ...options(),
      openModel: async (from) => {
        log.push(`open ${from}`);
        return { model, dispose: () => void log.push("dispose") };
      },
    });
    expect(await saved.evaluate({ reduce: "sum" })).toEqual(await evaluator().evaluate({ reduce: "sum" }));
    expect(log).toEqual(["open path/to/model", "dispose"]);
  });

  it("takes sampling, for the tasks that generate, and returns token ids", async () => {
    const values = await evaluator().evaluate({ reduce: "none", ...sampling });
    expect([values["choices"]!.length, values["sums"]!.length]).toEqual([15, 12]);
    expect(values).toEqual(await evaluator().evaluate({ reduce: "none", ...sampling }));
    expect(values["sums"]).not.toEqual(
      (await evaluator().evaluate({ reduce: "none", ...sampling, seed: 8 }))["sums"],
    );
    const { sums } = await evaluator({ suite: suite("sums") }).evaluate({
      returnIntermediates: true,
      ...sampling,
    });
    expect(sums!.intermediates).toHaveLength(12);
    expect(sums!.value).toEqual(expect.any(Number));
  });
});

it("refuses tasks that do not fit into the model's context together, before the weights load", async () => {
  const long = (name: string): SampledTask => ({
    name,
    version: "1",
    defaultShots: 0,
    open: () =>
      rolloutEvaluation({
        name,
        documents: [{ id: "1", question: "12345" }],
        prompt: ({ question }) => question,
        maxNewTokens: 20,
        score: () => 1,
      }),
  });
  const own = {
    tasks: { choices: choiceTask(), a: long("a"), b: long("b") },
    suite: suite("a", "choices", "b"),
  };
  const error = {
    code: "config",
    path: ["maxNewTokens"],
    where: "tasks a, b",
    got: expect.stringMatching(/^a: 20 beside prompts of up to 5 tokens, for a context of 20 tokens; b: .*$/),
  };
  const model = fakeModel({ contextLength: 20 });
  const [saved] = Evaluator.fromCheckpoint("path/to/model", {
    ...options(own),
    outlineModel: async () => ({ model }),
    openModel: () => Promise.reject(new Error("loaded")),
  });
  await expect(saved.run()).rejects.toMatchObject(error);
  await expect(evaluator(own, fakeTrainer("w", null, 20)).run()).rejects.toMatchObject(error);
});

describe("tasks without a suite", () => {
  const withoutSuite = (given: EvaluatorOptions["tasks"], name = "sft") =>
    Evaluator.fromTrainer(fakeTrainer(), { name, tasks: given, results });

  it("are measured with their defaults, from a list or by name", async () => {
    const list = withoutSuite([choiceTask(), sumsTask()]);
    expect(list.done).toBe(false);
    const { run, measured } = await list.run();
    expect(measured).toEqual(["choices", "sums"]);
    expect(run).toMatchObject({ config_path: null, suite: { tasks: { choices: {}, sums: {} } } });
    expect([list.done, (await withoutSuite(tasks()).run()).measured]).toEqual([true, []]);
    expect(await list.evaluate()).toEqual(await withoutSuite(tasks()).evaluate());
    expect(await evaluator({ tasks: [choiceTask(), sumsTask()] }).evaluate()).toEqual(await list.evaluate());
  });

  it.each<readonly [given: unknown, where: string, got: string]>([
    [[choiceTask(), choiceTask()], "tasks[1]", 'a second task "choices"'],
    [[choiceTask(), 3], "tasks[1]", "3"],
    ["choices", "tasks", '"choices"'],
  ])("refuse %j", (given, where, got) => {
    expect(() => withoutSuite(given as never)).toThrow(`Evaluator.fromTrainer options.${where}: got ${got}`);
  });

  it.each([[[]], [{}]])("are required: %j", (none) => {
    const message = `Evaluator.fromTrainer options.tasks: got ${JSON.stringify(none)}, expected at least one task`;
    expect(() => withoutSuite(none)).toThrow(message);
    expect(() => evaluator({ tasks: none })).toThrow(message);
  });
});

describe("a custom evaluation among the tasks", () => {
  const sums = () => sumsTask().open({ data: "" });
  const own = (given: object = {}, task: object = {}) =>
    evaluator({
      tasks: { choices: choiceTask(), sums: sums() },
      ...given,
      suite: { ...suite("choices"), tasks: { sums: task } },
    });

  it("is measured as it is, with limit, subsample and sampling", async () => {
    const { run } = await own().run();
    const { snapshot } = await measure(sums(), fakeTrainer().evaluableModel);
    expect(run.metrics).toEqual({ "sums/score,none": snapshot.metrics["score"]!.value });
    expect((await own({}, { limit: 2 }).evaluate({ reduce: "none" }))["sums"]).toHaveLength(2);
    const few = await own({}, { subsample: 1 }).evaluate({
      reduce: "none",
      temperature: 1,
      samplesPerPrompt: 3,
    });
    expect(few["sums"]).toHaveLength(3);
    expect((await own({ smoke: true }).evaluate({ reduce: "none" }))["sums"]).toHaveLength(3);
  });

  it.each([
    [{ shots: 2 }, "sums options.shots", "2"],
    [{ chat: { system: "x" } }, "sums options.chat", '{"system":"x"}'],
    [{ fewshot_pool: "x" }, "sums options.fewshotPool", '"x"'],
  ])("refuses the setting %j, which it cannot follow", async (task, where, got) => {
    await expect(own({}, task).run()).rejects.toMatchObject({ code: "config", where, got });
  });

  it("must be a task or an evaluation", () => {
    expect(() => evaluator({ tasks: { sums: 3 as never } })).toThrow(
      "options.tasks.sums: got 3, expected a task",
    );
  });
});

describe("run with sampling", () => {
  it("records it in the suite's settings and hash, the identity, and the harness' generation settings", async () => {
    const { run } = await evaluator({ results: join(folder, "a") }).run(sampling);
    const plain = await evaluator({ results: join(folder, "b") }).run();
    expect(run.suite).toMatchObject({ sampling });
    expect(plain.run.suite).not.toHaveProperty("sampling");
    expect(run.config_hash).not.toBe(plain.run.config_hash);
    expect(run.run_hash).not.toBe(plain.run.run_hash);
    expect(run.n["sums/score,none"]).toBe(12);
    expect(run.metrics["choices/acc,none"]).toBe(plain.run.metrics["choices/acc,none"]);
    const job = JSON.parse(await readFile(join(folder, "a/jobs/sft/results.json"), "utf8")) as {
      readonly identity: { readonly tasks: Record<string, { readonly evaluation: unknown }> };
    };
    expect(job.identity).toMatchObject({ sampling });
    expect(job.identity.tasks["sums"]!.evaluation).toMatchObject({
      sampling: { temperature: 0.7, topP: 0.9, maxNewTokens: 12 },
      samples: 4,
    });
    const file = (await readdir(join(folder, "a/jobs/sft"))).find((name) => name.startsWith("results_"))!;
    const harness = JSON.parse(await readFile(join(folder, "a/jobs/sft", file), "utf8")) as {
      readonly configs: Record<string, unknown>;
    };
    expect(harness.configs["sums"]).toMatchObject({
      repeats: 4,
      max_gen_toks: 12,
      do_sample: true,
      temperature: 0.7,
      top_p: 0.9,
    });
  });

  it("does not resume with other sampling, and resumes with the same", async () => {
    const dying = () => {
      throw new Error("out of power");
    };
    const interrupted = evaluator({ tasks: { ...tasks(), sums: sumsTask(dying) } });
    await expect(interrupted.run(sampling)).rejects.toThrow("out of power");
    for (const [other, says] of [
      [{ ...sampling, temperature: 0.8 }, "sampling.temperature: 0.7 → 0.8"],
      [{ ...sampling, topP: 1 }, "sampling.topP: 0.9 → 1"],
      [{ ...sampling, maxNewTokens: 13 }, "sampling.maxNewTokens: 12 → 13"],
      [{ ...sampling, samplesPerPrompt: 2 }, "sampling.samplesPerPrompt: 4 → 2"],
      [{ ...sampling, seed: 8 }, "sampling.seed: 7 → 8"],
      [{}, "sampling: "],
    ] as const)
      await expect(evaluator().run(other)).rejects.toThrow(says);
    const { measured } = await evaluator().run(sampling);
    expect(measured).toEqual(["sums"]);
  });

  it("refuses a second run with other sampling in the same results folder", async () => {
    await evaluator({ name: "base" }).run(sampling);
    await expect(evaluator().run({ ...sampling, temperature: 0.8 })).rejects.toMatchObject({
      code: "store",
      got: expect.stringContaining("sampling.temperature: 0.7 → 0.8") as string,
    });
    expect((await evaluator().run(sampling)).measured).toEqual(["choices", "sums"]);
    expect((await evaluator().run(sampling)).measured).toEqual([]);
  });

  it.each<readonly [sampling: CallSampling, given: Partial<EvaluatorOptions>, where: string, got: string]>([
    [{ temperature: -1 }, {}, "Evaluator.run options.temperature", "-1"],
    [{ topP: 2 }, {}, "Evaluator.run options.topP", "2"],
    [{ samplesPerPrompt: 2 }, {}, "Evaluator.run options.samplesPerPrompt", "2 at temperature 0"],
    [{ temprature: 1 } as never, {}, "Evaluator.run options.temprature", 'the unknown option "temprature"'],
    [
      { temperature: 1 },
      { suite: suite("choices") },
      "Evaluator.run options.temperature",
      "temperature 1 for tasks that do not generate (choices)",
    ],
    [
      { temperature: 1 },
      { tasks: { replies: replyTask() }, suite: suite("replies") },
      "Evaluator.run options.temperature",
      'temperature 1 for "replies", which sets its own sampling',
    ],
  ])("refuses %j before the model is loaded", async (wrong, given, where, got) => {
    const opened: unknown[] = [];
    const [saved] = Evaluator.fromCheckpoint("path/to/model", {
      ...options(given),
      openModel: async (source) => {
        opened.push(source);
        return { model: fakeModel() };
      },
    });
    await expect(saved.run(wrong)).rejects.toMatchObject({ code: "config", where, got });
    expect(opened).toEqual([]);
  });
});

describe("done", () => {
  const file = () => join(results, "metrics.json");

  it("is known to a new Evaluator over the same results folder", async () => {
    expect(evaluator().done).toBe(false);
    await evaluator().run();
    expect(evaluator().done).toBe(true);
    // Another name, model, adapter, suite, or results folder is another run.
    expect(evaluator({ name: "dpo" }).done).toBe(false);
    expect(evaluator({ smoke: true }).done).toBe(false);
    expect(evaluator({ suite: suite("sums") }).done).toBe(false);
    expect(evaluator({ results: join(folder, "elsewhere") }).done).toBe(false);
    expect(evaluator({}, fakeTrainer("w", "adapter")).done).toBe(false);
    await rm(file());
    expect(evaluator().done).toBe(false);
  });

  it("is known of a checkpoint without loading it, and of a suite file", async () => {
    const path = join(folder, "suite.yaml");
    await writeFile(path, JSON.stringify(suite("sums")));
    const saved = (adapter: string | null, load: boolean) =>
      Evaluator.fromCheckpoint("path/to/model", {
        ...options({ suite: path }),
        adapter,
        openModel: async () =>
          load ? { model: fakeModel(), fingerprint: () => "w" } : Promise.reject(new Error("loaded")),
      })[0];
    await saved(null, true).run();
    expect([saved(null, false).done, saved("tuned", false).done]).toEqual([true, false]);
    await writeFile(path, JSON.stringify(suite("choices", "sums")));
    expect(saved(null, false).done).toBe(false);
    await rm(path);
    expect(saved(null, false).done).toBe(false);
  });

  it("is false while a run of the name is interrupted, and true after it resumed", async () => {
    await evaluator().run();
    const dying = sumsTask(() => {
      throw new Error("out of power");
    });
    // The weights changed, so the suite is measured again.
    const again = evaluator({ tasks: { ...tasks(), sums: dying } }, fakeTrainer("v"));
    await expect(again.run()).rejects.toThrow("out of power");
    expect([again.done, evaluator().done]).toEqual([false, false]);
    await evaluator({}, fakeTrainer("v")).run();
    expect(again.done).toBe(true);
  });

  it("is true after a run with sampling", async () => {
    await evaluator().run(sampling);
    expect(evaluator().done).toBe(true);
  });

  it.each([
    ["metrics.json", () => '{"schema_version": 1, "runs": ['],
    ["metrics.json", () => '{"schema_version": 1, "runs": [null, 3, {"name": "sft"}]}'],
    ["metrics.json", (text: string) => text.replace('"schema_version": 1', '"schema_version": 2')],
    ["metrics.sft.partial.json", () => '{"schema_version": 1, "na'],
  ])("is false where run throws, and names the damaged file in a warning: %s", async (name, damage) => {
    await evaluator().run();
    await writeFile(join(results, name), damage(await readFile(file(), "utf8")));
    const warned = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    expect(evaluator().done).toBe(false);
    const [text] = warned.mock.calls.flat();
    warned.mockRestore();
    expect(text).toContain(join(results, name));
    await expect(evaluator().run()).rejects.toMatchObject({ code: "store" });
  });

  it("is false after a run without metrics, which run measures", async () => {
    await evaluator().run();
    const { runs, ...rest } = JSON.parse(await readFile(file(), "utf8"));
    await writeFile(file(), JSON.stringify({ ...rest, runs: [{ ...runs[0], metrics: {} }] }));
    expect(evaluator().done).toBe(false);
    expect((await evaluator().run()).measured).toEqual(["choices", "sums"]);
    expect(evaluator().done).toBe(true);
  });

  it("is false with another tokenizer or chat template than the run's, which run measures or refuses", async () => {
    await evaluator().run();
    const other = evaluator({}, otherTokenizerTrainer());
    expect([evaluator().done, other.done]).toEqual([true, false]);
    expect((await other.run()).measured).toEqual(["choices", "sums"]);
    expect(other.done).toBe(true);
    const saved = (tokenizer: string | null) =>
      Evaluator.fromCheckpoint("path/to/model", {
        ...options({ name: "saved" }),
        tokenizer,
        openModel: async () => ({ model: fakeModel(), fingerprint: () => tokenizer ?? "w" }),
      })[0];
    await saved(null).run();
    expect([saved(null).done, saved("path/to/tokenizer").done]).toEqual([true, false]);
    await expect(saved("path/to/tokenizer").run()).rejects.toMatchObject({ code: "config" });
  });
});
