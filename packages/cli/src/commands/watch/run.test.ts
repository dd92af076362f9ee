import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { watchedCheckpoints } from "./watched-checkpoints.test-data.ts";

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
  const found = await snapshotsOf("latest");
  expect(found.map(({ step, phase }) => [step, phase])).toEqual([
    [0, "tuned"],
    [10, "tuned"],
  ]);
  expect(found[1]!.crossed).toHaveLength(5);
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
