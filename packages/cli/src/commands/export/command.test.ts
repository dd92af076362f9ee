import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { strFromU8, unzipSync } from "fflate";
import type { Snapshot } from "@periodic-eval/contracts";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { lineOf } from "./every-eval-ever.ts";
import { asRead, hostileTexts, writeExportedRun } from "./exported-run.test-data.ts";
import { samplesOf } from "./measurement.ts";

async function exported(format: string, ...more: readonly string[]) {
  const runDir = temporaryFolder();
  await writeExportedRun(runDir);
  const { code, out, err } = await runCommand(["export", runDir, "--to", format, "--json", ...more]);
  expect([code, err]).toEqual([0, ""]);
  return { runDir, ...(JSON.parse(out) as { folder: string; files: readonly string[] }) };
}

// oxlint-disable-next-line typescript/no-explicit-any -- the files have the formats of other programs
type Any = any;

describe("--to inspect", () => {
  const logOf = (folder: string, name: string): Readonly<Record<string, Any>> => {
    const file = readdirSync(folder).find((entry) => entry.includes(name))!;
    const entries = unzipSync(readFileSync(join(folder, file)));
    return Object.fromEntries(
      Object.entries(entries).map(([path, bytes]) => [path, JSON.parse(strFromU8(bytes))]),
    );
  };

  it("writes a log per measurement that was taken, with receipt and provenance", async () => {
    const { folder, runDir, files } = await exported("inspect");
    expect(folder).toBe(join(runDir, "exports", "inspect"));
    expect(files).toEqual([
      expect.stringMatching(/^2026-01-01T00-00-00-000Z_em-kl-step-50_[0-9a-f]{22}\.eval$/),
      expect.stringMatching(/^2026-01-01T00-00-00-000Z_em-alignment-step-100_[0-9a-f]{22}\.eval$/),
      expect.stringMatching(/^2026-01-01T00-00-00-000Z_em-capability-step-100_[0-9a-f]{22}\.eval$/),
    ]);
    const { "header.json": header, "summaries.json": summaries, ...rest } = logOf(folder, "capability");
    expect(header).toMatchObject({
      version: 2,
      status: "success",
      eval: {
        task: "em/capability",
        model: "tiny",
        tags: ["phase:em", "step:100"],
        dataset: { name: "allenai/ai2_arc", samples: 10 },
        metadata: {
          receipt: [{ part: "weights", before: "a1", after: "a1", intact: true }],
          provenance: { hash: "00", seed: "42" },
          weights: "a1",
        },
      },
      results: {
        total_samples: 10,
        headline: { score: "accuracy" },
        scores: [{ name: "accuracy", metrics: { accuracy: { value: 0.5 }, stderr: { value: 0.25 } } }],
      },
    });
    expect(summaries).toHaveLength(10);
    expect(rest["samples/q1_epoch_1.json"]).toMatchObject({
      id: "q1",
      epoch: 1,
      input: "Which one is 1?",
      choices: ["this 1", "that 1"],
      target: "A",
      output: { completion: "B" },
      scores: { correct: { value: "I", answer: "B" } },
      metadata: { prompt: "<user>Which one is 1?", nats: [-1, -2] },
    });
    // The template failed.
    expect(rest["samples/q2_epoch_1.json"].scores).toEqual({});
  });

  it("keeps texts as they are, leaves out anchors, and names no entry outside of its folder", async () => {
    const { folder } = await exported("inspect");
    const { "header.json": header, ...log } = logOf(folder, "alignment");
    expect(header.eval.tags).toEqual(["phase:em", "step:100", "partial"]);
    expect(header.eval.model_generate_config).toEqual({ temperature: 1, top_p: 0.9, max_tokens: 64 });
    expect(Object.keys(header.results.scores[0].metrics)).toEqual(["misaligned", "misaligned/a", "stderr"]);
    const samples = Object.entries(log).filter(([path]) => path.startsWith("samples/"));
    expect(samples.map(([path]) => path)).toEqual(
      Object.keys(hostileTexts).map((_, at) => `samples/row-${at}_epoch_${at + 1}.json`),
    );
    for (const [at, text] of Object.values(hostileTexts).map(asRead).entries()) {
      const sample = samples[at]![1];
      expect([sample.input, sample.output.completion]).toEqual([text, text]);
      expect(sample.scores).toEqual(
        at === 0
          ? {}
          : {
              misaligned: { value: at < 3 ? 1 : 0, explanation: `judge: ${text}` },
              aligned: { value: 10 * at, explanation: `judge: ${text}` },
            },
      );
    }
    expect(samples[4]![1].output.choices[0].stop_reason).toBe("max_tokens");
  });

  it("keeps groups without a metric over all of them, such as projections on directions", async () => {
    const runDir = temporaryFolder();
    const store = fileStore(runDir);
    const [metric] = Object.values(exampleSnapshot().metrics);
    const projections = { "projection/refusal": metric!, "projection/sycophancy": metric! };
    await store.put(exampleSnapshot({ metrics: projections, primary_metric: "projection/refusal" }), []);
    await store.close!();
    const { out } = await runCommand(["export", runDir, "--to", "inspect", "--json"]);
    const { results } = logOf((JSON.parse(out) as { folder: string }).folder, "capability")["header.json"];
    expect(results.headline).toMatchObject({ score: "projection", metric: "projection/refusal" });
    expect(results.scores).toHaveLength(1);
    expect(Object.keys(results.scores[0].metrics)).toEqual(Object.keys(projections));
    expect(results.scores[0].metrics["projection/refusal"]).toMatchObject({
      name: "refusal",
      group: "projection",
      value: metric!.value,
    });
  });

  it("writes a failed measurement as an error", async () => {
    const { folder } = await exported("inspect");
    expect(logOf(folder, "kl")["header.json"]).toMatchObject({
      status: "error",
      results: null,
      error: { message: "out of memory" },
    });
  });

  it("writes the same files again", async () => {
    const { runDir, folder, files } = await exported("inspect");
    const read = () => files.map((file) => readFileSync(join(folder, file)).toString("base64"));
    const before = read();
    await runCommand(["export", runDir, "--to", "inspect"]);
    expect(read()).toEqual(before);
  });
});

it("writes records and lines of Every Eval Ever, whose hashes and counts agree", async () => {
  const { folder, files } = await exported("every-eval-ever", "--model", "owner/tiny");
  const name =
    /^data\/periodic-eval\/owner\/tiny\/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}/;
  expect(files.map((file) => file.replace(name, ""))).toEqual([
    "_samples.jsonl",
    ".json",
    "_samples.jsonl",
    ".json",
  ]);
  const [answers, , lines, record] = files.map((file) => readFileSync(join(folder, file), "utf8"));
  const capability = JSON.parse(record!);
  expect(capability).toMatchObject({
    evaluation_id: "periodic-eval/owner/tiny/em/capability/100/1767225600",
    eval_library: { name: "@periodic-eval/core", version: "0.1.0" },
    evaluation_results: [
      {
        evaluation_result_id: "accuracy",
        source_data: { source_type: "hf_dataset", hf_repo: "allenai/ai2_arc", hf_split: "test" },
        metric_config: { metric_id: "accuracy", lower_is_better: false, min_score: 0, max_score: 1 },
        score_details: { score: 0.5, uncertainty: { num_samples: 4, standard_error: { value: 0.25 } } },
      },
    ],
    detailed_evaluation_results: { total_rows: 9, additional_details: { answers_without_a_grade: "1" } },
  });
  expect(JSON.parse(capability.source_metadata.additional_details.receipt)).toHaveLength(1);
  expect(JSON.parse(lines!.split("\n")[0]!)).toMatchObject({
    sample_id: "q0",
    evaluation_result_id: "accuracy",
    input: { raw: "Which one is 0?", reference: ["this 0"], choices: ["this 0", "that 0"] },
    output: { raw: ["this 0"] },
    evaluation: { score: 1, is_correct: true },
  });
  const hostile = answers!
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(hostile.map(({ output }) => output.raw[0])).toEqual(
    Object.values(hostileTexts).slice(1).map(asRead),
  );
  expect(hostile.map(({ evaluation }) => [evaluation.score, evaluation.is_correct])).toEqual([
    [1, false],
    [1, false],
    [0, true],
    [0, true],
    [0, true],
    [0, true],
  ]);
  // Python splits lines at these.
  expect(answers).not.toMatch(/[\u0085\u2028\u2029]/);
});

it("scores by the primary metric first, and leaves out flags and tokens that were not measured", async () => {
  const runDir = temporaryFolder();
  const store = fileStore(runDir);
  const { metrics } = exampleSnapshot();
  await store.put(
    exampleSnapshot({
      metrics: { appropriate: { ...Object.values(metrics)[0]!, higher_is_better: true } },
      primary_metric: "appropriate",
      answer_fields: {
        question: "question",
        answer: "text",
        grades: ["appropriate"],
        flags: [{ name: "follows", any: [{ follows: { is: [true] } }] }],
        tokens: { prompt: "read", generated: "written" },
      },
    }),
    [null, false, true].map((follows, at) => ({
      id: `q${at}`,
      question: "Is it?",
      text: "Yes",
      follows,
      appropriate: at === 1,
      read: at === 1 ? 20 : null,
      written: 1,
    })),
  );
  await store.close!();
  const scoresIn = async (format: string, file: string) => {
    const { out } = await runCommand(["export", runDir, "--to", format, "--json"]);
    const { folder, files } = JSON.parse(out) as { folder: string; files: readonly string[] };
    return readFileSync(
      join(
        folder,
        files.find((path) => path.endsWith(file))!,
      ),
    );
  };
  const entries = unzipSync(await scoresIn("inspect", ".eval"));
  const samples = [0, 1, 2].map((at) => JSON.parse(strFromU8(entries[`samples/q${at}_epoch_1.json`]!)));
  expect(samples.map(({ output }) => output.usage)).toEqual([
    undefined,
    { input_tokens: 20, output_tokens: 1, total_tokens: 21 },
    undefined,
  ]);
  expect(samples.map(({ scores }) => scores)).toEqual([
    { appropriate: { value: false } },
    { follows: { value: 0 }, appropriate: { value: true } },
    { follows: { value: 1 }, appropriate: { value: false } },
  ]);
  const lines = (await scoresIn("every-eval-ever", ".jsonl")).toString().trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).evaluation)).toEqual([
    { score: 0, is_correct: false },
    { score: 1, is_correct: true },
    { score: 0, is_correct: false },
  ]);
});

it("names no headline for an unknown primary metric, and counts one file of one measurement", async () => {
  const runDir = temporaryFolder();
  const store = fileStore(runDir);
  const [norm] = Object.values(exampleSnapshot().metrics);
  await store.put(
    exampleSnapshot({ metrics: { accuracy: { ...norm!, value: null, stderr: null }, norm: norm! } }),
    [],
  );
  await store.close!();
  const folder = join(runDir, "logs");
  const { out } = await runCommand(["export", runDir, "--to", "inspect", "--out", folder]);
  expect(out).toBe(`${folder}: 1 file of 1 measurement`);
  const [log] = readdirSync(folder);
  const { results } = JSON.parse(strFromU8(unzipSync(readFileSync(join(folder, log!)))["header.json"]!));
  expect(results.headline).toBeUndefined();
  expect(results.scores.map(({ metrics }: Any) => Object.keys(metrics))).toEqual([[], ["norm", "stderr"]]);
});

it("writes the results of a model's page on the hub, with the dataset that was asked", async () => {
  const { folder, files } = await exported("hub", "--model", "owner/tiny");
  expect(files).toEqual([".eval_results/capability.yaml", "model-index.yaml"]);
  const read = (file: string) => parse(readFileSync(join(folder, file), "utf8"));
  expect(read(files[0]!)).toEqual([
    {
      dataset: { id: "allenai/ai2_arc", task_id: "ARC-Challenge", revision: "c0ffee" },
      value: 0.5,
      date: "2026-01-01T00:00:00.000Z",
      notes: expect.stringMatching(
        /^@periodic-eval\/core 0\.1\.0, capability 1, em step 100, n = 4; 95 % interval 0\.15 to 0\.85; training undisturbed: not proven; provenance 00, snapshot [0-9a-f]{64}$/,
      ),
    },
  ]);
  const [{ name, results }] = read(files[1]!)["model-index"];
  expect([name, results.length]).toEqual(["owner/tiny", 1]);
  expect(results[0].metrics[0]).toMatchObject({ type: "accuracy", value: 0.5, args: { n: 4, step: 100 } });
});

describe("on the hub, a callback without a result of the trained model", () => {
  const accuracy = exampleSnapshot().metrics["accuracy"]!;
  const warning = { kind: "garbage", metrics: ["accuracy"], count: 40, total: 40, void: true };
  const message = "40 of 40 answers are incoherent: accuracy cannot be judged.";

  it.each<[string, Partial<Snapshot>, string]>([
    [
      "cannot be judged",
      { warnings: [{ ...warning, message }] },
      `its measurement at the end cannot be judged: ${message}`,
    ],
    [
      "failed",
      { status: "failed", reason: "boom", metrics: {} },
      "its measurement at the end is failed: boom",
    ],
    [
      "has no value",
      { metrics: { accuracy: { ...accuracy, value: null } } },
      "its measurement at the end has no value of accuracy",
    ],
    ["is early", { step: 50 }, "its last measurement is at step 50 of 100 of em, not at the end"],
  ])("is left out if its last measurement %s", async (_, changes, reason) => {
    const runDir = temporaryFolder();
    const run = fileStore(runDir);
    await run.put(exampleSnapshot({ phase: "em" }), []);
    await run.put(exampleSnapshot({ phase: "em", step: 100, crossed: [], ...changes }), []);
    await run.close!();
    const { out } = await runCommand(["export", runDir, "--to", "hub", "--json"]);
    expect(JSON.parse(out)).toMatchObject({
      files: [],
      left_out_callbacks: [{ id: "capability", reason }],
    });
  });

  it("is left out if another phase was trained later, but not if training ended early", async () => {
    const runDir = temporaryFolder();
    const run = fileStore(runDir);
    await run.put(exampleSnapshot({ phase: "em", step: 24 }), []);
    await run.recordClosing!({ phase: "em", step: 24, maxSteps: 100, finished: true });
    const left = async (): Promise<Any> =>
      JSON.parse((await runCommand(["export", runDir, "--to", "hub", "--json"])).out);
    expect(await left()).toMatchObject({ files: ["model-index.yaml"], left_out_callbacks: [] });
    await run.recordClosing!({ phase: "second", step: 10, maxSteps: 10, finished: true });
    await run.close!();
    expect((await left()).left_out_callbacks).toEqual([
      {
        id: "capability",
        reason: "its last measurement is at the end of em, and second was trained later",
      },
    ]);
  });
});

it("counts what it left out, and refuses damaged rows", async () => {
  const { runDir } = await exported("hub");
  const { out } = await runCommand(["export", runDir, "--to", "hub"]);
  expect(out.split("\n")).toEqual([
    "Left out: kl: its last measurement is at step 50 of 100 of em, not at the end",
    "Left out: margin: its last measurement is at step 50 of 100 of em, not at the end",
    "Left out: alignment: its measurement at the end is partial: one answer was not graded",
    `${join(runDir, "exports", "hub")}: 2 files of 3 measurements, 1 skipped or not graded left out`,
  ]);
  await writeFile(join(runDir, "periodic_eval", "em", "capability_step_100.samples.jsonl"), "{}\n");
  const { code, err } = await runCommand(["export", runDir, "--to", "inspect"]);
  expect(code).toBe(1);
  expect(err).toContain("capability_step_100.samples.jsonl");
});

it("writes 10,000 rows in less than 10 seconds of a processor", async () => {
  const runDir = temporaryFolder();
  await writeExportedRun(runDir, 10_000);
  for (const format of ["inspect", "every-eval-ever"]) {
    const began = process.cpuUsage();
    expect((await runCommand(["export", runDir, "--to", format])).code).toBe(0);
    const { user, system } = process.cpuUsage(began);
    expect((user + system) / 1e6).toBeLessThan(10);
  }
}, 300_000);

describe("scores of an answer", () => {
  const truncated = { name: "truncated", any: [{ finish: { is: ["length"] } }] };
  const ungraded = { name: "ungraded", any: [{ grade: { is: [null] } }] };
  const refuses = { name: "refuses a safe prompt", any: [{ refused: { is: [true] } }] };
  const wrong = { name: "wrong", any: [{ score: { is: [false, 0] } }] };
  const metric = { value: 0.5, range: [0, 1] };

  it.each([
    [
      "a refused safe prompt",
      { grades: ["appropriate"], flags: [refuses] },
      { appropriate: false, refused: true },
      "appropriate",
      false,
      false,
    ],
    [
      "an answered one",
      { grades: ["appropriate"], flags: [refuses] },
      { appropriate: true, refused: false },
      "appropriate",
      true,
      true,
    ],
    [
      "a score of 0",
      { grades: ["score"], flags: [truncated] },
      { score: 0, finish: "stop" },
      "score",
      0,
      false,
    ],
    [
      "a reward of 1",
      { grades: ["reward"], flags: [ungraded, truncated] },
      { reward: 1, grade: 1 },
      "reward",
      1,
      true,
    ],
    [
      "a part of the full score",
      { grades: ["score"], flags: [wrong, truncated] },
      { score: 0.1 },
      "score",
      0.1,
      false,
    ],
    ["the full score", { grades: ["score"], flags: [wrong, truncated] }, { score: 1 }, "score", 1, true],
  ])("says of %s whether it is right", (_, fields, row, name, value, isRight) => {
    const snapshot = {
      answer_fields: fields,
      evaluation: "own",
      metrics: { score: metric },
      primary_metric: "score",
    } as unknown as Snapshot;
    const [sample] = samplesOf(snapshot, [{ id: "a", ...row }]);
    expect(sample!.scores[0]).toEqual([name, value]);
    const line = JSON.parse(lineOf(sample!, snapshot, { evaluation_id: "e", model_id: "m" })!) as unknown;
    expect(line).toMatchObject({ evaluation: { score: Number(value), is_correct: isRight } });
  });
});
