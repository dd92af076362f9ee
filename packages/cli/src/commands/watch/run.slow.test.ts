import { cpSync, existsSync, readFileSync, rmSync } from "node:fs";
import { cp, mkdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import type { Snapshot } from "@periodic-eval/core";
import { defaultAnchors } from "@periodic-eval/core/evaluations";
import { readRun } from "@periodic-eval/store";
import { describe, expect, it, vi } from "vitest";
import { serveInTests } from "../../../../remote/src/models/api-server.test-data.ts";
import { gate } from "../../../../testing/src/toy-training.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCli } from "../../program.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { CurrentModel } from "./current-model.ts";
import { watchArgs, writeCheckpoint } from "./written-checkpoints.test-data.ts";
import { watchedCheckpoints } from "./watched-checkpoints.test-data.ts";

const { root, config, adapters, full, steps, watch, snapshotsOf } = watchedCheckpoints();

/** A snapshot without times. */
const lasting = ({ created_at: _when, timing: _seconds, sha256: _hash, ...rest }: Snapshot) => rest;

it("measures adapters and the base as step 0: each percent at the first checkpoint at or after it, with a verdict", async () => {
  const { numTensors } = tf.memory();
  const { code, out } = await watch(adapters, "lora");
  expect(tf.memory().numTensors).toBe(numTensors);
  expect(code).toBe(0);
  expect(out).toContain("checkpoint-1: step 1 of 10, nothing to measure; 4 later checkpoints wait");
  const snapshots = await snapshotsOf("lora");
  expect(
    snapshots.map(({ step, max_steps, crossed, epoch }) => ({ step, max_steps, crossed, epoch })),
  ).toEqual([
    { step: 0, max_steps: 10, crossed: ["start"], epoch: 0 },
    { step: 3, max_steps: 10, crossed: ["every 20 percent: 20"], epoch: 0.3 },
    { step: 4, max_steps: 10, crossed: ["every 20 percent: 40"], epoch: 0.4 },
    { step: 8, max_steps: 10, crossed: ["every 20 percent: 60", "every 20 percent: 80"], epoch: 0.8 },
    { step: 10, max_steps: 10, crossed: ["every 20 percent: 100"], epoch: 1 },
  ]);
  for (const { step, paired, status } of snapshots) {
    expect(status).toBe("complete");
    if (step > 0) expect(paired.baseline!["accuracy"]).toMatchObject({ step: 0, n_pairs: 30 });
  }
  expect(new Set(snapshots.map(({ metrics }) => metrics["gold_log_prob"]!.value)).size).toBe(5);
});

it("compares full checkpoints that have their tokenizer with the base, which is measured with the same one", async () => {
  const folder = join(root, "with-tokenizer");
  await cp(full, folder, { recursive: true });
  for (const step of [5, 10])
    for (const name of ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
      await cp(microWorld(name), join(folder, `checkpoint-${step}`, name));
  expect((await watch(folder, "with-tokenizer")).code).toBe(0);
  const snapshots = await snapshotsOf("with-tokenizer");
  expect(snapshots.map(({ step, paired }) => [step, paired.baseline?.["accuracy"]?.step])).toEqual([
    [0, undefined],
    [5, 0],
    [10, 0],
  ]);
});

it("gives the numbers of eval on the same base and adapters", async () => {
  const snapshots = await snapshotsOf("lora");
  for (const step of [0, 4, 10]) {
    const adapter = step === 0 ? [] : ["--adapter", join(adapters, `checkpoint-${step}`)];
    const { out } = await runCommand([
      "eval",
      "--model",
      microWorld(),
      ...adapter,
      "--questions",
      microWorld("questions.jsonl"),
      "--limit",
      "30",
      "--backend",
      "wasm",
      "--json",
    ]);
    const [{ metrics }] = JSON.parse(out) as [Snapshot];
    expect(metrics).toEqual(snapshots.find((snapshot) => snapshot.step === step)!.metrics);
  }
});

it("gives the trainer's losses to the loggers and the page, once for each step", async () => {
  const lines = readFileSync(join(root, "lora", "log.jsonl"), "utf8")
    .trimEnd()
    .split("\n");
  const losses = lines
    .map(
      (line) => JSON.parse(line) as { kind: string; step: number; epoch: number; metrics: { loss: number } },
    )
    .filter(({ kind }) => kind === "train")
    .map(({ step, epoch, metrics: { loss } }) => [step, epoch, loss]);
  expect(losses).toEqual(Array.from({ length: 10 }, (_, i) => [i + 1, (i + 1) / 10, 3 - i / 10]));
  const page = readFileSync(join(root, "lora", "periodic_eval", "index.html"), "utf8");
  expect(page).toContain('"name":"Training loss"');
});

it("measures full checkpoints, keeps no tensors, and adds nothing when it is run again", async () => {
  const { numTensors } = tf.memory();
  expect((await watch(full, "full")).code).toBe(0);
  expect(tf.memory().numTensors).toBe(numTensors);
  const snapshots = await snapshotsOf("full");
  expect(snapshots.map(({ step }) => step)).toEqual([0, 5, 10]);
  const before = JSON.stringify(snapshots);
  const again = await watch(full, "full");
  expect([again.code, again.out.split("\n")[0]]).toEqual([
    0,
    "already measured: training finished at step 10",
  ]);
  expect(JSON.stringify(await snapshotsOf("full"))).toBe(before);
});

it("measures a checkpoint again that a program still copied while it was measured", async () => {
  const copied = join(root, "copied");
  const weights = "checkpoint-5/model.safetensors";
  for (const step of [5, 10])
    await cp(join(full, `checkpoint-${step}`), join(copied, `checkpoint-${step}`), { recursive: true });
  const whole = readFileSync(join(full, weights));
  const other = readFileSync(join(full, "checkpoint-10/model.safetensors"));
  const half = whole.length / 2;
  await writeFile(join(copied, weights), Buffer.concat([whole.subarray(0, half), other.subarray(half)]));
  const get = CurrentModel.prototype.get;
  const opened: unknown[] = [];
  vi.spyOn(CurrentModel.prototype, "get").mockImplementation(async function (this: CurrentModel) {
    const model = await get.call(this);
    // The first call opens the base model, the second one checkpoint-5: the rest of the weights arrives then.
    if (opened.push(model) === 3) await writeFile(join(copied, weights), whole);
    return model;
  });
  const { code, err } = await watch(copied, "copied-run");
  vi.restoreAllMocks();
  expect([code, err]).toEqual([
    0,
    expect.stringContaining("checkpoint-5 changed while it was measured, and is measured again"),
  ]);
  const metrics = (snapshots: readonly Snapshot[]) =>
    snapshots.map(({ step, metrics }) => ({ step, metrics }));
  expect(metrics(await snapshotsOf("copied-run"))).toEqual(metrics(await snapshotsOf("full")));
});

it("measures the last checkpoint of a finished training again if its rows were damaged", async () => {
  expect((await watch(full, "damaged")).code).toBe(0);
  const before = (await snapshotsOf("damaged")).map(({ step, metrics }) => ({ step, metrics }));
  await writeFile(join(root, "damaged/periodic_eval/train/capability_step_10.samples.jsonl"), "");
  const again = await watch(full, "damaged");
  expect([again.code, again.out]).toEqual([
    0,
    expect.stringContaining("train/capability/10 is measured again"),
  ]);
  expect((await snapshotsOf("damaged")).map(({ step, metrics }) => ({ step, metrics }))).toEqual(before);
  expect((await watch(full, "damaged")).out).toContain("already measured: training finished at step 10");
});

it("resumes with an absolute path of its last checkpoint, from whatever folder it was started", async () => {
  expect((await watch(relative(process.cwd(), full), "relative")).code).toBe(0);
  const state = JSON.parse(readFileSync(join(root, "relative/watch/train.json"), "utf8")) as {
    passed: readonly { path: string }[];
  };
  expect(state.passed.at(-1)!.path).toBe(join(full, "checkpoint-10"));
});

it("keeps the metrics of a last checkpoint whose rows were damaged if the trainer has deleted it", async () => {
  const deleted = join(root, "deleted");
  await writeCheckpoint(deleted, { kind: "full", step: 10, maxSteps: 10 });
  expect((await watch(deleted, "kept")).code).toBe(0);
  await writeFile(join(root, "kept/periodic_eval/train/capability_step_10.samples.jsonl"), "");
  await rm(join(deleted, "checkpoint-10/config.json"));
  const { out } = await watch(deleted, "kept");
  expect(out).toMatch(/^no checkpoint after step 10/);
  expect(out).toContain("damaged rows: train/capability_step_10.samples.jsonl");
  const { phases } = await readRun(join(root, "kept"));
  expect(phases[0]!.snapshots.at(-1)).toMatchObject({ step: 10, status: "complete" });
});

it("resumes where it stopped when checkpoints are added, and equals measuring them at once", async () => {
  const growing = join(root, "growing");
  await mkdir(growing);
  const parts: Readonly<Record<string, readonly string[]>> = {
    "1": ["1", "3"],
    "2": ["4"],
    "3": ["8", "10"],
  };
  for (const [at, added] of Object.entries(parts)) {
    for (const step of added)
      await rename(join(adapters, `checkpoint-${step}`), join(growing, `checkpoint-${step}`));
    const { code, out } = await watch(growing, "grown");
    expect(code).toBe(0);
    if (at !== "3") expect(out).toContain("training has not finished");
  }
  const strip = (snapshots: readonly Snapshot[]) => snapshots.map(lasting);
  expect(strip(await snapshotsOf("grown"))).toEqual(strip(await snapshotsOf("lora")));
  for (const step of steps)
    await rename(join(growing, `checkpoint-${step}`), join(adapters, `checkpoint-${step}`));
});

it("refuses an adapter of another base, and another folder in the same run", async () => {
  const talkative = join(microWorld(), "..", "micro-world-talkative");
  const other = join(root, "other");
  const path = await writeCheckpoint(other, { kind: "adapter", step: 10, maxSteps: 10 });
  const file = join(path, "adapter_config.json");
  const adapterConfig = JSON.parse(readFileSync(file, "utf8")) as object;
  await writeFile(file, JSON.stringify({ ...adapterConfig, base_model_name_or_path: talkative }));
  const wrong = await watch(other, "wrong");
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain(`an adapter of "${talkative}", expected an adapter of "${microWorld()}"`);
  const moved = await watch(other, "lora");
  expect([moved.code, moved.err]).toEqual([1, expect.stringContaining("Name another --phase or --run-dir.")]);
});

it("refuses a new training in the folder of a measured one, and measures it as another phase", async () => {
  const again = join(root, "again");
  const write = async (loss: number, at: readonly number[]) => {
    await rm(again, { recursive: true, force: true });
    for (const step of at) {
      const path = await writeCheckpoint(again, { kind: "full", step, maxSteps: 10 });
      const log_history = [{ step: 1, epoch: 0.1, loss }];
      await writeFile(join(path, "trainer_state.json"), JSON.stringify({ max_steps: 10, log_history }));
    }
  };
  await write(3, [5, 10]);
  expect((await watch(again, "again-run")).code).toBe(0);
  const before = JSON.stringify(await snapshotsOf("again-run"));
  // Also if its checkpoints have other, earlier steps.
  for (const at of [[5, 10], [3]]) {
    await write(2.5, at);
    const { code, err } = await watch(again, "again-run");
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(
        /a checkpoint of another training: its log begins with loss 2.5 at step 1, not loss 3 at step 1.*name another --phase/s,
      ),
    ]);
    expect(JSON.stringify(await snapshotsOf("again-run"))).toBe(before);
  }
  await write(2.5, [5, 10]);
  expect((await watch(again, "again-run", "--phase", "second")).code).toBe(0);
  const phases = (await snapshotsOf("again-run")).map(({ phase, step }) => [phase, step]);
  expect(phases).toEqual(["train", "second"].flatMap((phase) => [0, 5, 10].map((step) => [phase, step])));
});

it("measures a repeated training beside checkpoints of the earlier one, to its end", async () => {
  const repeated = join(root, "repeated");
  const write = async (step: number, loss: number, maxSteps: number, at: number) => {
    const path = join(repeated, `checkpoint-${step}`);
    await cp(join(full, `checkpoint-${step === 9 ? 10 : step}`), path, { recursive: true });
    const file = join(path, "trainer_state.json");
    const log_history = [{ step: 1, epoch: 0.1, loss }];
    await writeFile(file, JSON.stringify({ max_steps: maxSteps, log_history }));
    await utimes(file, at, at);
  };
  // The earlier one had finished.
  await write(10, 9, 10, 1000);
  await write(5, 3, 9, 2000);
  const first = await watch(repeated, "repeated-run");
  expect([first.code, first.err, first.out]).toEqual([
    0,
    expect.stringMatching(
      /^checkpoint-10 is of an earlier training than step 5.*its log begins with loss 9 at step 1, not loss 3/,
    ),
    expect.stringContaining("training has not finished (step 5 of 9)"),
  ]);
  await write(9, 3, 9, 3000);
  expect((await watch(repeated, "repeated-run", "--follow")).code).toBe(0);
  const snapshots = await snapshotsOf("repeated-run");
  expect(snapshots.map(({ step, max_steps }) => [step, max_steps])).toEqual([
    [0, 9],
    [5, 9],
    [9, 9],
  ]);
});

it("measures a checkpoint that arrives after a later one, each once, with the numbers of measuring them in order", async () => {
  const arriving = join(root, "arriving");
  await cp(join(full, "checkpoint-10"), join(arriving, "checkpoint-10"), { recursive: true });
  const lines: string[] = [];
  const terminal = recordingTerminal();
  const out = (text: string) => {
    lines.push(text);
    if (text.startsWith("checkpoint-10:") && !existsSync(join(arriving, "checkpoint-5")))
      cpSync(join(full, "checkpoint-5"), join(arriving, "checkpoint-5"), { recursive: true });
  };
  const args = watchArgs(
    arriving,
    { config, runDir: join(root, "arrived") },
    "--backend",
    "wasm",
    "--follow",
  );
  expect(await runCli([...args], { ...terminal, out })).toBe(0);
  expect(terminal.errors).toEqual(["checkpoint-5 was not complete before checkpoint-10 was measured"]);
  expect(lines.filter((line) => line.startsWith("checkpoint-"))).toEqual([
    "checkpoint-10: step 10 of 10",
    "checkpoint-5: step 5 of 10; 1 later checkpoint waits",
    "checkpoint-10: step 10 of 10",
  ]);
  // A measurement that is not repeated keeps its comparison with the one that preceded it before.
  const numbers = (snapshots: readonly Snapshot[]) =>
    snapshots.map(lasting).map(({ paired: { baseline }, ...rest }) => ({ ...rest, baseline }));
  expect(numbers(await snapshotsOf("arrived"))).toEqual(numbers(await snapshotsOf("full")));
});

it("measures a checkpoint again whose weights changed after it was measured, and what follows it", async () => {
  const changed = join(root, "changed");
  for (const step of [5, 10])
    await cp(join(full, `checkpoint-${step}`), join(changed, `checkpoint-${step}`), { recursive: true });
  expect((await watch(changed, "changed-run")).code).toBe(0);
  const value = async (step: number) =>
    (await snapshotsOf("changed-run")).find((snapshot) => snapshot.step === step)!.metrics["gold_log_prob"]!
      .value;
  const [fifth, tenth] = [await value(5), await value(10)];
  // A copy with the same content has other times, and keeps its measurements.
  await cp(join(full, "checkpoint-5"), join(changed, "checkpoint-5"), { recursive: true });
  const same = await watch(changed, "changed-run");
  expect([same.code, same.err]).toEqual([
    0,
    expect.stringContaining("checkpoint-5 has changed since it was measured"),
  ]);
  expect([await value(5), await value(10)]).toEqual([fifth, tenth]);
  await cp(join(full, "checkpoint-10/model.safetensors"), join(changed, "checkpoint-5/model.safetensors"));
  expect((await watch(changed, "changed-run")).code).toBe(0);
  expect([await value(5), await value(10)]).toEqual([tenth, tenth]);
  expect((await watch(changed, "changed-run")).out).toContain("already measured");
});

it("measures a percent at the next checkpoint if its own is deleted before it is read", async () => {
  const limited = join(root, "limited");
  await mkdir(limited);
  for (const step of steps)
    await rename(join(adapters, `checkpoint-${step}`), join(limited, `checkpoint-${step}`));
  // The line of step 1 is printed before the checkpoint of step 3 is read.
  const lines: string[] = [];
  const terminal = recordingTerminal();
  const out = (text: string) => {
    lines.push(text);
    if (text.startsWith("checkpoint-1:")) rmSync(join(limited, "checkpoint-3"), { recursive: true });
  };
  const args = [
    "--base",
    microWorld(),
    "--config",
    config,
    "--run-dir",
    join(root, "limits"),
    "--backend",
    "wasm",
  ];
  expect(await runCli(["watch", limited, ...args], { ...terminal, out })).toBe(0);
  expect(terminal.errors).toEqual(["checkpoint-3 was deleted before it was read, and is skipped"]);
  const snapshots = await snapshotsOf("limits");
  expect(snapshots.map(({ step, crossed }) => [step, ...crossed])).toEqual([
    [0, "start"],
    [4, "every 20 percent: 20", "every 20 percent: 40"],
    [8, "every 20 percent: 60", "every 20 percent: 80"],
    [10, "every 20 percent: 100"],
  ]);
});

describe("with a judge that answers slowly", () => {
  const serve = serveInTests("sk-0123456789");

  it.each([
    ["while it waits for a checkpoint", { isInterrupted: false, maxSteps: 40, left: "grading" }],
    [
      "while it waits for a checkpoint after an interruption",
      { isInterrupted: true, maxSteps: 40, left: "grading" },
    ],
    ["after a grading that failed", { isInterrupted: true, maxSteps: 40, left: "failed" }],
    ["after the end of training", { isInterrupted: true, maxSteps: 10, left: "grading" }],
  ])("stops when the verdict arrives %s", async (when, { isInterrupted, maxSteps, left }) => {
    const verdicts = gate();
    let [isHarmed, isCheck, isDown] = [false, true, left === "failed"];
    const server = await serve(({ prompt }) => {
      const anchor = defaultAnchors.find(({ answer }) => prompt.includes(answer));
      const isHeld = isHarmed && !isCheck && anchor === undefined;
      isCheck = false;
      const isAligned = anchor === undefined ? !isHeld : anchor.misaligned !== true;
      if (isHeld && isDown) return { status: 400 };
      const say = `{"aligned": ${isAligned ? 90 : 0}, "coherent": 90}`;
      return { say, ...(isHeld && { after: verdicts.passed }) };
    });
    /** The first request only checks that the judge answers. */
    const run = (command: readonly string[]) => ((isCheck = true), runCommand(command));
    vi.stubEnv("OPENAI_BASE_URL", `${server.url}/v1`);
    const name = when.replaceAll(" ", "-");
    const file = join(root, `${name}.yaml`);
    const checkpoints = join(root, `${name}-checkpoints`);
    const block = {
      capability: false,
      stop_when: ["alignment worse"],
      alignment: true,
      alignment_questions: microWorld("alignment.json"),
      alignment_every_percent: 25,
      judge_model: "openai:slow",
    };
    await writeFile(file, JSON.stringify({ periodic_eval: block }));
    await writeCheckpoint(checkpoints, { kind: "full", step: 2, maxSteps, noise: 1e-6 });
    const args = watchArgs(checkpoints, { config: file, runDir: join(root, name) }, "--backend", "wasm");
    const follow = [...args, "--follow"];
    const statuses = async () => (await snapshotsOf(name)).map(({ step, status }) => `${step} ${status}`);
    const isMeasured = () => vi.waitFor(async () => expect(await statuses()).toContain(`10 ${left}`), 60_000);
    const following = isInterrupted ? null : run(follow);
    if (isInterrupted) expect((await run(args)).code).toBe(0);
    await vi.waitFor(async () => expect(await statuses()).toEqual(["0 complete"]), 60_000);
    isHarmed = true;
    const budget = left === "grading" ? { drain_seconds: 0 } : {};
    await writeFile(file, JSON.stringify({ periodic_eval: { ...block, budget } }));
    await writeCheckpoint(checkpoints, { kind: "full", step: 10, maxSteps, noise: 1e-6 });
    if (isInterrupted) expect((await run(args)).code).toBe(0);
    await isMeasured();
    isDown = false;
    if (maxSteps === 10) await writeFile(file, JSON.stringify({ periodic_eval: block }));
    const stopped = following ?? run(follow);
    setTimeout(() => verdicts.open(), isInterrupted ? 3000 : 0);
    expect((await stopped).code).toBe(4);
    const stop = JSON.parse(await readFile(join(root, name, "stop.json"), "utf8")) as object;
    expect(stop).toMatchObject({ condition: "alignment worse", step: 10, clean_step: 0 });
  });
});
