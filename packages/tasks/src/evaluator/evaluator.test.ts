import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { nodeFiles, type FileSystem } from "@periodic-eval/store";
import { fakeModel } from "@periodic-eval/testing";
import { faultyFiles } from "../../../testing/src/faulty-files.test-data.ts";
import { beforeEach, describe, expect, it } from "vitest";
import { Evaluator } from "./evaluator.ts";
import type { EvaluatorOptions } from "./evaluator-options.ts";
import {
  choiceTask,
  fakeTrainer,
  otherTokenizerTrainer,
  replyTask,
  suiteText,
  type FakeTaskOptions,
} from "../suite/fake-tasks.test-data.ts";
import { dataError } from "@periodic-eval/contracts/options";
import { readMetrics, checkDocuments } from "../results/metrics-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let folder: string;
let results: string;
let suite: string;
beforeEach(async () => {
  folder = temporaryFolder();
  results = join(folder, "results");
  suite = join(folder, "suite.yaml");
  await writeFile(suite, suiteText);
});

const tasksOf = (given: FakeTaskOptions = {}) => ({ choices: choiceTask(given), replies: replyTask(given) });
let minute = 0;
const now = () => new Date(Date.UTC(2026, 0, 2, 3, minute++));

const options = (given: Partial<EvaluatorOptions> = {}): EvaluatorOptions => ({
  name: "sft",
  tasks: tasksOf(),
  suite,
  results,
  now,
  ...given,
});
const evaluator = (given: Partial<EvaluatorOptions> = {}, trainer = fakeTrainer()) =>
  Evaluator.fromTrainer(trainer, options(given));
const jsonAt = async (...path: readonly string[]) =>
  JSON.parse(await readFile(join(results, ...path), "utf8")) as Record<string, unknown>;

/** Options of a run that crashes at the first model call for `replies`. */
const dying = {
  tasks: tasksOf({
    before: (task) => {
      if (task === "replies") throw new Error("out of power");
    },
  }),
};

describe("a run", () => {
  it("adds metrics to metrics.json, with standard errors and the number of documents", async () => {
    const one = evaluator({ method: "sft", extras: { note: "first" } });
    expect(one.done).toBe(false);
    const { run, measured, folder: job } = await one.run();
    expect(one.done).toBe(true);
    expect(measured).toEqual(["choices", "replies"]);
    const file = await readMetrics(join(results, "metrics.json"));
    expect(file).toEqual({ schema_version: 1, runs: [run] });
    expect(run).toMatchObject({
      name: "sft",
      method: "sft",
      model: "tiny",
      adapter: null,
      config_path: suite,
    });
    expect(run).toMatchObject({ model_args: "pretrained=tiny", extras: { note: "first" } });
    expect(run.config_hash).toMatch(/^pe128:/);
    expect(Object.keys(run.metrics)).toEqual([
      ...[
        "choices",
        "choices_stem",
        "choices_algebra",
        "choices_physics",
        "choices_humanities",
        "choices_law",
      ].map((entry) => `${entry}/acc,none`),
      ...[
        "choices",
        "choices_stem",
        "choices_algebra",
        "choices_physics",
        "choices_humanities",
        "choices_law",
      ].map((entry) => `${entry}/acc_norm,none`),
      "replies/exact_match,strict-match",
      "replies/exact_match,flexible-extract",
    ]);
    expect(Object.keys(run.stderr)).toEqual(Object.keys(run.metrics));
    // The limit is 4 for each of 3 subjects, which makes 12; `replies` has 6.
    expect(run.n).toMatchObject({
      "choices/acc,none": 12,
      "choices_law/acc,none": 4,
      "replies/exact_match,strict-match": 6,
    });
    const p = run.metrics["choices/acc,none"]!;
    expect(run.stderr["choices/acc,none"]).toBeCloseTo(Math.sqrt((p * (1 - p)) / 12), 12);
    const files = (await readdir(job)).sort();
    const id = run.timestamp.replaceAll(":", "-");
    expect(files).toEqual(
      ["algebra", "law", "physics"]
        .map((subject) => `samples_choices_${subject}_${id}.jsonl`)
        .concat(`samples_replies_${id}.jsonl`, `results_${id}.json`, "results.json")
        .sort(),
    );
    expect((await readdir(results)).sort()).toEqual(["jobs", "metrics.json"]);
    expect(await jsonAt("jobs", "sft", "results.json")).toMatchObject({
      run: { name: "sft" },
      tasks: { choices: { status: "complete", metrics: { acc: { n: 12, higher_is_better: true } } } },
    });
  });

  it("writes no samples with `samples: false`, and the same other files", async () => {
    const { run, folder: job } = await evaluator({ samples: false }).run();
    const id = run.timestamp.replaceAll(":", "-");
    expect((await readdir(job)).sort()).toEqual(["results.json", `results_${id}.json`]);
    const whole = await evaluator({ results: join(folder, "whole") }).run();
    expect({ ...run, timestamp: null }).toEqual({ ...whole.run, timestamp: null });
    const harness = await jsonAt("jobs", "sft", `results_${id}.json`);
    expect(harness["task_hashes"]).toEqual({});
    expect(Object.keys(harness["configs"] as object)).toEqual([
      ...["algebra", "physics", "law"].map((subject) => `choices_${subject}`),
      "replies",
    ]);
  });

  it("measures the current weights in each run", async () => {
    let weights = "before";
    const trainer = {
      evaluableModel: fakeModel({ weights: () => weights }),
      modelFingerprint: () => weights,
    };
    const one = evaluator({}, trainer);
    const before = await one.run();
    weights = "after";
    const after = await one.run();
    expect(after.measured).toEqual(["choices", "replies"]);
    expect(after.run.metrics).not.toEqual(before.run.metrics);
    const { runs } = await readMetrics(join(results, "metrics.json"));
    expect(runs.map(({ name, timestamp }) => [name, timestamp])).toEqual([
      ["sft", before.run.timestamp],
      ["sft", after.run.timestamp],
    ]);
    // Both runs keep their files, and results.json comes from the last run.
    expect((await readdir(before.folder)).filter((file) => file.startsWith("results_"))).toHaveLength(2);
    expect(await jsonAt("jobs", "sft", "results.json")).toMatchObject({
      run: { timestamp: after.run.timestamp },
    });
  });

  it("returns the stored results if it already completed", async () => {
    const before = await evaluator().run();
    const again = evaluator();
    expect(await again.run()).toEqual({ run: before.run, folder: before.folder, measured: [] });
    expect(again.done).toBe(true);
    expect((await readMetrics(join(results, "metrics.json"))).runs).toHaveLength(1);
  });

  it("finds the stored run before it checks graders and loads references", async () => {
    let checks = 0;
    const checked = {
      ...choiceTask(),
      open: () => ({ ...choiceTask().open({ data: "" }), check: async () => void checks++ }),
    };
    const tasks = { choices: checked, replies: replyTask() };
    await evaluator({ tasks }).run();
    expect((await evaluator({ tasks }).run()).measured).toEqual([]);
    expect(checks).toBe(1);
  });

  it("measures a model without a fingerprint again in each run, and cannot resume", async () => {
    const trainer = () => ({ ...fakeTrainer(), modelFingerprint: () => null });
    await evaluator({}, trainer()).run();
    expect((await evaluator({}, trainer()).run()).measured).toEqual(["choices", "replies"]);
    await expect(evaluator({ ...dying, name: "other" }, trainer()).run()).rejects.toThrow("out of power");
    await expect(evaluator({ name: "other" }, trainer()).run()).rejects.toThrow(
      "a model without a fingerprint",
    );
  });

  it("reports its progress, and stops when it is aborted", async () => {
    const reported: unknown[] = [];
    const controller = new AbortController();
    const aborted = evaluator({
      signal: controller.signal,
      onProgress: (progress) => {
        reported.push(progress);
        if (progress.task === "replies" && progress.done === 2)
          controller.abort(new Error("stopped by hand"));
      },
    });
    await expect(aborted.run()).rejects.toThrow("stopped by hand");
    expect(aborted.done).toBe(false);
    expect(reported).toContainEqual(expect.objectContaining({ task: "choices", done: 12, total: 12 }));
    expect(reported.at(-1)).toMatchObject({ task: "replies", done: 2, total: 6 });
    expect((await evaluator().run()).measured).toEqual(["replies"]);
  });

  it("throws if the weights change during a run", async () => {
    let weights = "w";
    const trainer = { ...fakeTrainer(), modelFingerprint: () => weights };
    const tasks = tasksOf({ before: (task) => task === "replies" && (weights = "v") });
    await expect(evaluator({ tasks }, trainer).run()).rejects.toThrow(
      'task "replies": got weights of "tiny" that changed while they were measured',
    );
    expect(Object.keys((await jsonAt("metrics.sft.partial.json"))["tasks"] as object)).toEqual(["choices"]);
  });

  it("reports an error in the last task before it measures the first", async () => {
    const calls: string[] = [];
    const broken = { ...replyTask(), open: () => ({ ...replyTask().open({ data: "" }), items: () => [] }) };
    const tasks = { choices: choiceTask({ before: (task) => calls.push(task) }), replies: broken };
    await expect(evaluator({ tasks }).run()).rejects.toThrow('task "replies" items: got no items');
    expect(calls).toEqual([]);
  });

  it("throws if another run with the same name is in progress", async () => {
    let other: Promise<unknown> | undefined;
    const before = () => (other ??= expect(evaluator().run()).rejects.toThrow("a lock held by process"));
    await evaluator({ tasks: tasksOf({ before }) }).run();
    await other;
  });
});

describe("settings", () => {
  it.each(["limit", "shots", "chat", "seed", "fewshotSeed", "temperature", "maxNewTokens", "systemPrompt"])(
    "rejects the option %s, which belongs in the suite",
    (key) => {
      expect(() => evaluator({ [key]: 1 })).toThrow(`Evaluator.fromTrainer options.${key}: got`);
    },
  );

  it("throw if they are unknown or invalid", () => {
    expect(() => evaluator({ resluts: "x" } as object)).toThrow('Did you mean "results"?');
    expect(() => evaluator({ extras: { a: NaN } })).toThrow(
      "Evaluator.fromTrainer options.extras.a: got NaN",
    );
    expect(() => evaluator({ smoke: "yes" } as object)).toThrow('smoke: got "yes", expected true or false');
    expect(() => evaluator({ name: "../x" })).toThrow("name");
    expect(() => Evaluator.fromCheckpoint("x", options() as never)).toThrow("openModel");
  });

  it("throw if results already hold runs of another suite", async () => {
    await evaluator({ name: "base" }).run();
    await writeFile(suite, suiteText.replace("limit: 4", "limit: 3"));
    await expect(evaluator().run()).rejects.toThrow(
      'settings other than those of the run "base" in it (tasks.choices.limit: 4 → 3), expected one suite',
    );
    expect((await evaluator({ results: join(folder, "elsewhere") }).run()).measured).toHaveLength(2);
  });

  it("throw if results already hold runs that measured other documents", async () => {
    const base = await evaluator({ name: "base" }).run();
    const second = { tasks: tasksOf({ edition: "2nd. " }) };
    const refused = {
      code: "store",
      path: ["tasks", "choices"],
      got: 'different documents of choices in the runs "sft" and "base"',
    };
    await expect(evaluator(second).run()).rejects.toMatchObject(refused);
    const elsewhere = join(folder, "other-documents");
    const { run } = await evaluator({ ...second, results: elsewhere }).run();
    const file = (at: string, one: typeof run) => ({ path: join(at, "metrics.json"), runs: [one] });
    const [one, other] = [file(results, base.run), file(elsewhere, run)];
    const checked = async (...files: (typeof one)[]) => checkDocuments(files);
    await expect(checked(one, other)).rejects.toMatchObject({ code: "store", where: other.path });
    await checked(one, one);
  });

  it("throw for a name that another model has in the results", async () => {
    await evaluator({ name: "base" }).run();
    const other = fakeTrainer();
    const renamed = {
      ...other,
      evaluableModel: {
        ...other.evaluableModel,
        identity: { ...other.evaluableModel.identity, name: "other" },
      },
    };
    const refused = { code: "config", path: ["name"], fix: expect.stringContaining("--name") };
    await expect(evaluator({ name: "base" }, renamed).run()).rejects.toMatchObject({
      ...refused,
      got: 'the model other under the name "base"',
      expected: expect.stringMatching(/^the model tiny/),
    });
    expect((await evaluator({ name: "base" }).run()).measured).toEqual([]);
    expect((await evaluator({ name: "other" }, renamed).run()).measured).toHaveLength(2);
  });

  it("throw for a checkpoint whose weights changed under the same name", async () => {
    let weights = "a";
    const openModel = async () => ({ model: fakeTrainer().evaluableModel, fingerprint: () => weights });
    const checkpoint = (path = "m") =>
      Evaluator.fromCheckpoint(path, { ...options(), name: "base", openModel })[0];
    await checkpoint().run();
    expect((await checkpoint("./m").run()).measured).toEqual([]);
    expect([checkpoint("./m").done, checkpoint("../m").done]).toEqual([true, false]);
    await expect(checkpoint("../m").run()).rejects.toMatchObject({ path: ["name"] });
    weights = "b";
    await expect(checkpoint().run()).rejects.toMatchObject({ code: "config", path: ["name"] });
    expect((await readMetrics(join(results, "metrics.json"))).runs).toHaveLength(1);
  });

  it("throw for an entry of the suite with its file and line", async () => {
    const entry = "{ kl_to_reference: { task: replies }, reference: m }";
    await writeFile(suite, `${suiteText}evaluations:\n  - ${entry}\n`);
    const items = () => Promise.reject(dataError("rows", "none", "rows", "Add one."));
    const evaluations = {
      kl_to_reference: () => ({ ...choiceTask().open({ data: "" }), name: "kl", items }),
    };
    await expect(evaluator({ evaluations }).run()).rejects.toMatchObject({
      code: "data",
      where: `${suite}:7 evaluations.0, rows`,
      path: ["evaluations", 0],
    });
  });

  it("throw for an unknown task", async () => {
    await writeFile(suite, suiteText.replace("replies", "replys"));
    await expect(evaluator().run()).rejects.toThrow(`${suite}:5 tasks.replys: got "replys"`);
  });
});

describe("an interrupted run", () => {
  it("resumes after its last finished task and gives the same results", async () => {
    const whole = await evaluator({ results: join(folder, "whole") }).run();
    await expect(evaluator(dying).run()).rejects.toThrow("out of power");
    const partial = await jsonAt("metrics.sft.partial.json");
    expect(Object.keys(partial["tasks"] as object)).toEqual(["choices"]);
    const { run, measured } = await evaluator().run();
    expect(measured).toEqual(["replies"]);
    expect({ ...run, timestamp: null }).toEqual({ ...whole.run, timestamp: null });
    expect(run.timestamp).toBe(partial["timestamp"]);
    expect((await readdir(results)).sort()).toEqual(["jobs", "metrics.json"]);
  });

  it.each<
    [
      what: string,
      says: string,
      given: () => Partial<EvaluatorOptions>,
      trainer?: () => ReturnType<typeof fakeTrainer>,
    ]
  >([
    ["adapter", 'adapter: null → "other"', () => ({}), () => fakeTrainer("w", "other")],
    ["weights", 'model.weights: "w" → "v"', () => ({}), () => fakeTrainer("v")],
    ["tokenizer", "tokenizer: ", () => ({}), otherTokenizerTrainer],
    ["context length", "model.context_length: null → 512", () => ({}), () => fakeTrainer("w", null, 512)],
    ["documents", "tasks.choices.items: ", () => ({ tasks: tasksOf({ edition: "2nd. " }) })],
  ])("does not resume with different %s", async (_, says, given, trainer = fakeTrainer) => {
    await expect(evaluator(dying).run()).rejects.toThrow("out of power");
    const before = await jsonAt("metrics.sft.partial.json");
    await expect(evaluator(given(), trainer()).run()).rejects.toThrow(says);
    expect(await jsonAt("metrics.sft.partial.json")).toEqual(before);
  });

  it.each([
    ["limit: 4", "limit: 3", "tasks.choices.limit: 4 → 3"],
    ["shots: 1", "shots: 2", "tasks.choices.shots: 1 → 2"],
    ["replies: {}", "replies: { chat: { system: Be brief. } }", "tasks.replies.chat: null → "],
    ["name: small", "name: small\nseed: 43", "seed: 42 → 43"],
    ["name: small", "name: small\nfewshot_seed: 43", "fewshot_seed: 1234 → 43"],
  ])("does not resume with a suite that replaces %s with %s", async (from, to, says) => {
    await expect(evaluator(dying).run()).rejects.toThrow("out of power");
    await writeFile(suite, suiteText.replace(from, to));
    await expect(evaluator().run()).rejects.toThrow(says);
    await rm(join(results, "metrics.sft.partial.json"));
    expect((await evaluator().run()).measured).toEqual(["choices", "replies"]);
  });

  it("starts over when no task was finished, with the current settings", async () => {
    const before = () => {
      throw new Error("out of power");
    };
    await expect(evaluator({ tasks: tasksOf({ before }) }).run()).rejects.toThrow("out of power");
    expect(await jsonAt("metrics.sft.partial.json")).toMatchObject({ tasks: {} });
    expect((await evaluator({}, fakeTrainer("v")).run()).measured).toEqual(["choices", "replies"]);
  });

  it.each<readonly [title: string, given: Partial<EvaluatorOptions>, weights: string | undefined]>([
    ["leaves no samples behind in a run with the same settings", {}, undefined],
    ["leaves no samples behind in a run that writes none", { samples: false }, undefined],
    ["leaves no samples behind in a run of another model", {}, "v"],
  ])("%s", async (_, given, weights) => {
    const before = () => {
      throw new Error("out of power");
    };
    await expect(evaluator({ tasks: tasksOf({ before }) }).run()).rejects.toThrow("out of power");
    const { timestamp } = (await jsonAt("metrics.sft.partial.json")) as { readonly timestamp: string };
    const end = `_${timestamp.replaceAll(":", "-")}.jsonl`;
    const old = join(results, "jobs", "sft", `samples_choices_law${end}`);
    await writeFile(old, "old");
    const { folder: job } = await evaluator(given, fakeTrainer(weights)).run();
    expect((await readdir(job)).filter((file) => file.endsWith(end))).toEqual([]);
  });

  it("removes its drafts, however the path of the results folder is written", async () => {
    await mkdir(results);
    const draft = ".metrics.sft.partial.json.7.1.tmp";
    const others = [".metrics.dpo.partial.json.7.1.tmp", ".notes.tmp"];
    for (const file of [draft, ...others]) await writeFile(join(results, file), "{");
    await evaluator({ results: `${results}//` }).run();
    expect((await readdir(results)).sort()).toEqual([...others, "jobs", "metrics.json"]);
  });

  it("throws if its partial file is damaged", async () => {
    await expect(evaluator(dying).run()).rejects.toThrow("out of power");
    await writeFile(join(results, "metrics.sft.partial.json"), '{"schema_version": 1, "na');
    await expect(evaluator().run()).rejects.toThrow("partial.json: got invalid JSON");
    await writeFile(join(results, "metrics.sft.partial.json"), '{"schema_version": 1}');
    await expect(evaluator().run()).rejects.toThrow("partial.json: name: got undefined");
  });
});

describe("a smoke run", () => {
  it("measures 10 documents per task, and writes to a separate folder", async () => {
    await writeFile(suite, suiteText.replace("limit: 4", "limit: null"));
    const { run } = await evaluator({ smoke: true, tasks: tasksOf({ documents: 20 }) }).run();
    expect(run.n).toMatchObject({ "choices/acc,none": 10, "replies/exact_match,strict-match": 10 });
    expect(run.suite).toMatchObject({ smoke: true });
    expect(await readdir(results)).toEqual(["smoke"]);
    expect((await readdir(join(results, "smoke"))).sort()).toEqual(["jobs", "metrics.json"]);
  });

  it("is never merged into a full run after a crash", async () => {
    await expect(evaluator({ ...dying, smoke: true }).run()).rejects.toThrow("out of power");
    expect((await evaluator().run()).measured).toEqual(["choices", "replies"]);
    // This holds even if someone moves its partial file to where a full run looks for it,
    const moved = join(results, "metrics.other.partial.json");
    await cp(join(results, "smoke", "metrics.sft.partial.json"), moved);
    await expect(evaluator({ name: "other" }).run()).rejects.toThrow("smoke: true → false");
    // or if no task has more documents than a smoke run measures.
    await rm(moved);
    await writeFile(suite, suiteText.replace("limit: 4", "subsample: 10").replace("{}", "{ subsample: 10 }"));
    await expect(evaluator({ results: join(folder, "b"), smoke: true, ...dying }).run()).rejects.toThrow(
      "power",
    );
    await cp(join(folder, "b", "smoke"), join(folder, "c"), { recursive: true });
    await expect(evaluator({ results: join(folder, "c") }).run()).rejects.toThrow("smoke: true → false");
  });
});

describe("a crash at any file operation", () => {
  /** Returns everything that crashes must not change. */
  const outcome = async (at: string) => {
    const { runs } = await readMetrics(join(at, "metrics.json"));
    const job = join(at, "jobs", "sft");
    const files = (await readdir(job)).filter((file) => file.startsWith("samples_")).sort();
    const samples = await Promise.all(files.map((file) => readFile(join(job, file), "utf8")));
    const names = files.map((file) => file.slice(0, file.lastIndexOf("_")));
    const left = (await readdir(at)).filter((file) => file !== "jobs" && file !== "metrics.json");
    const drafts = (await readdir(job)).filter((file) => file.startsWith("."));
    return { runs: runs.map((run) => ({ ...run, timestamp: null })), names, samples, left, drafts };
  };

  it("loses no finished task and repeats none", async () => {
    let operations = 0;
    const counting = faultyFiles(({ count }) => {
      operations = count;
      return "none";
    });
    await evaluator({ results: join(folder, "whole"), fs: counting }).run();
    const whole = await outcome(join(folder, "whole"));
    expect(whole.left).toEqual([]);
    expect(operations).toBeGreaterThan(40);
    for (let at = 1; at <= operations; at++) {
      const here = join(folder, `at-${at}`);
      const calls: string[] = [];
      const tasks = tasksOf({ before: (task) => calls.push(task) });
      const fs: FileSystem = faultyFiles(({ count }) => (count === at ? "die" : "none"));
      await evaluator({ results: here, tasks, fs })
        .run()
        .catch(() => undefined);
      const partial = await nodeFiles.read(join(here, "metrics.sft.partial.json")).catch(() => "{}");
      const { tasks: done = {} } = JSON.parse(partial) as { readonly tasks?: object };
      calls.length = 0;
      await evaluator({ results: here, tasks }).run();
      for (const task of Object.keys(done)) expect(calls, `after a death at ${at}`).not.toContain(task);
      const found = await outcome(here);
      expect(found, `after a death at ${at}`).toEqual(whole);
      await rm(here, { recursive: true });
    }
  });
});
