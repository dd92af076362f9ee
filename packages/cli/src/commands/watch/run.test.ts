import { access, cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { serveInTests } from "../../../../remote/src/models/api-server.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { watchedCheckpoints } from "./watched-checkpoints.test-data.ts";
import { watchArgs, writeCheckpoint } from "./written-checkpoints.test-data.ts";

const { root, adapters, full, watch, snapshotsOf } = watchedCheckpoints();

it("refuses sharded checkpoints by the command that merges them", async () => {
  const sharded = join(root, "sharded");
  const weights = join(sharded, "checkpoint-5/pytorch_model_fsdp_0");
  await mkdir(weights, { recursive: true });
  const { code, err } = await watch(sharded, "sharded");
  expect([code, err]).toEqual([1, expect.stringContaining(`accelerate merge-weights ${weights} OUTPUT`)]);
});

it.each([
  ['"base"', '"bash"'],
  ['"kind": "full"', '"kind": "fill"'],
])("names a damaged state file: %s became %s", async (from, to) => {
  const runDir = join(root, `state-${to.length}`);
  await mkdir(join(runDir, "watch"), { recursive: true });
  const session = { progress: { step: 10 } };
  const state = { checkpoints: full, base: microWorld(), path: full, kind: "full", finished: true, session };
  await writeFile(join(runDir, "watch/train.json"), JSON.stringify(state, null, 2).replace(from, to));
  const { code, err } = await watch(full, `state-${to.length}`);
  expect([code, err]).toEqual([
    1,
    expect.stringContaining("train.json: got a damaged file, expected the state"),
  ]);
});

it("measures only the newest checkpoint in the order `latest`", async () => {
  expect((await watch(adapters, "latest", "--order", "latest", "--phase", "tuned")).code).toBe(0);
  const snapshots = await snapshotsOf("latest");
  expect(snapshots.map(({ step, phase }) => [step, phase])).toEqual([
    [0, "tuned"],
    [10, "tuned"],
  ]);
  expect(snapshots[1]!.crossed).toHaveLength(5);
});

it("refuses a folder with checkpoints of two trainings before it measures", async () => {
  const mixed = join(root, "mixed");
  for (const step of [5, 10])
    await cp(join(full, `checkpoint-${step}`), join(mixed, `checkpoint-${step}`), { recursive: true });
  await writeFile(
    join(mixed, "checkpoint-10/trainer_state.json"),
    '{"max_steps": 10, "seed": 8, "log_history": [{"step": 1, "loss": 9}]}',
  );
  const { code, err } = await watch(mixed, "mixed-run");
  expect([code, err]).toEqual([
    1,
    expect.stringContaining("checkpoint-10: got a checkpoint of another training"),
  ]);
});

it("says what to do while there is nothing to measure", async () => {
  const empty = join(root, "empty");
  await mkdir(empty);
  const nothing = await watch(empty, "nothing");
  expect([nothing.code, nothing.err]).toEqual([
    1,
    expect.stringContaining(
      "got no complete checkpoint, expected checkpoint-<N> or step_<N> folders. Add --follow",
    ),
  ]);
  await mkdir(join(empty, "checkpoint-5"));
  expect((await watch(empty, "nothing")).code).toBe(1);
  await rm(empty, { recursive: true });
});

it("reports missing questions before the first checkpoint", async () => {
  const file = join(root, "missing.yaml");
  await writeFile(file, JSON.stringify({ questions: "none.jsonl" }));
  const { code, err } = await runCommand([
    "watch",
    join(root, "later"),
    "--base",
    microWorld(),
    "--config",
    file,
    "--run-dir",
    join(root, "unborn"),
    "--backend",
    "wasm",
    "--follow",
  ]);
  expect([code, err]).toEqual([1, expect.stringContaining("none.jsonl")]);
});

it("ends with exit code 4 and a file that a trainer can poll when a condition is met, also if it is called again", async () => {
  const config = join(root, "stop.yaml");
  const stop_when = [{ when: "capability.accuracy > 50 %", even_at_start: true }];
  const block = { questions: microWorld("questions.jsonl"), subsample_n: 30, stop_when };
  await writeFile(config, JSON.stringify({ periodic_eval: block }));
  const runDir = join(root, "stopped");
  const args = watchArgs(adapters, { config, runDir }, "--backend", "wasm");
  const first = await runCommand(args);
  expect([first.code, first.err]).toEqual([4, expect.stringContaining("Stop the trainer")]);
  const file = () => readFile(join(runDir, "stop.json"), "utf8").then((text) => JSON.parse(text) as unknown);
  const stop = {
    condition: "capability.accuracy > 50 %",
    reason: expect.stringContaining("capability.accuracy > 50 %: capability.accuracy is "),
    step: 0,
    clean_step: null,
    clean_checkpoint: null,
  };
  expect(await file()).toEqual(stop);
  expect((await snapshotsOf("stopped")).map(({ step }) => step)).toEqual([0]);
  expect((await runCommand(args)).code).toBe(4);
  await writeFile(config, JSON.stringify({ periodic_eval: { ...block, stop_when: null } }));
  expect((await runCommand(args)).code).toBe(0);
  await expect(file()).rejects.toThrow("ENOENT");
});

it("names a stop at a later checkpoint again without waiting for another one, and forgets it when its condition is gone", async () => {
  const config = join(root, "later-stop.yaml");
  const checkpoints = join(root, "growing");
  for (const step of [10, 20])
    await writeCheckpoint(checkpoints, { kind: "full", step, maxSteps: 40, noise: step === 20 ? 1 : 1e-6 });
  const stop_when = ["capability worse"];
  const block = {
    questions: microWorld("questions.jsonl"),
    subsample_n: 100,
    eval_every_percent: 25,
    stop_when,
  };
  await writeFile(config, JSON.stringify({ periodic_eval: block }));
  const runDir = join(root, "stopped-later");
  const args = watchArgs(checkpoints, { config, runDir }, "--backend", "wasm", "--follow");
  const file = () => readFile(join(runDir, "stop.json"), "utf8").then((text) => JSON.parse(text) as unknown);
  expect((await runCommand(args)).code).toBe(4);
  const stop = {
    condition: "capability worse",
    reason: expect.stringContaining("at step 20"),
    step: 20,
    clean_step: 10,
    clean_checkpoint: join(checkpoints, "checkpoint-10"),
  };
  expect(await file()).toEqual(stop);
  // As after a kill before the file was written.
  await rm(join(runDir, "stop.json"));
  const again = await runCommand(args);
  expect([again.code, again.err]).toEqual([4, expect.stringContaining("Stop the trainer")]);
  expect(await file()).toEqual(stop);
  await writeFile(config, JSON.stringify({ periodic_eval: { ...block, stop_when: null } }));
  const corrected = await runCommand(args.slice(0, -1));
  expect([corrected.code, corrected.out]).toEqual([
    0,
    expect.stringContaining("no checkpoint after step 20"),
  ]);
  await expect(file()).rejects.toThrow("ENOENT");
});

describe("with a judge that answers slowly", () => {
  const serve = serveInTests("sk-0123456789");

  it("writes a stop before it waits for grading, which the next call finishes", async () => {
    let isSlow = true;
    // The first request only checks that the judge answers.
    const server = await serve((_, count) =>
      isSlow && count > 0 ? "stall" : { say: '{"aligned": 80, "coherent": 80}' },
    );
    vi.stubEnv("OPENAI_BASE_URL", `${server.url}/v1`);
    const config = join(root, "graded-later.yaml");
    const checkpoints = join(root, "harmed");
    await writeCheckpoint(checkpoints, { kind: "full", step: 10, maxSteps: 40, noise: 1 });
    const block = {
      questions: microWorld("questions.jsonl"),
      subsample_n: 100,
      eval_every_percent: 25,
      stop_when: ["capability worse"],
      alignment: true,
      alignment_questions: microWorld("alignment.json"),
      alignment_num_samples: 1,
      alignment_every_percent: 100,
      judge_model: "openai:slow",
      budget: { drain_seconds: 4 },
    };
    await writeFile(config, JSON.stringify({ periodic_eval: block }));
    const runDir = join(root, "graded-later");
    const args = watchArgs(checkpoints, { config, runDir }, "--backend", "wasm", "--follow");
    const statuses = async () =>
      (await snapshotsOf("graded-later")).map(({ id, status }) => `${id} ${status}`);
    let hasEnded = false;
    const first = runCommand(args).finally(() => (hasEnded = true));
    await vi.waitFor(() => access(join(runDir, "stop.json")), 60_000);
    expect(hasEnded).toBe(false);
    expect((await first).code).toBe(4);
    expect(await statuses()).toContain("alignment grading");
    isSlow = false;
    const again = await runCommand(args);
    expect([again.code, again.err.match(/Stop the trainer/g)?.length]).toEqual([4, 1]);
    expect(await statuses()).toEqual(["alignment complete", "capability complete", "capability complete"]);
  });
});
