import { mkdir, mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parse } from "yaml";
import { keepRunConfig } from "./run-config.ts";
import type { TrainConfig } from "./train-config.ts";

let run_dir = "";
beforeEach(async () => void (run_dir = await mkdtemp(join(tmpdir(), "run-config-"))));
afterEach(() => rm(run_dir, { recursive: true }));

it("keeps the first configuration of a run, tells what a later one has other, and refuses another model", async () => {
  const phase = { phase: "em", method: "sft", dataset: "em.jsonl", config: { maxSteps: 5 } } as const;
  const config: TrainConfig = {
    model: "owner/name",
    run_dir,
    seed: 42,
    resume: "auto",
    lora: { rank: 4, targetModules: ["q_proj"] },
    config: {},
    periodic_eval: {},
    loggers: {},
    phases: [phase],
  };
  const { resume: _resume, ...kept } = config;
  const written = async () => parse(await readFile(join(run_dir, "train.yaml"), "utf8")) as unknown;
  expect(await keepRunConfig({ ...config, model: "owner/nmae" })).toEqual([]);
  expect(await keepRunConfig(config)).toEqual([]);
  await mkdir(join(run_dir, "checkpoints"));
  expect(await written()).toEqual(kept);
  expect(await keepRunConfig({ ...config, backend: "wasm" })).toEqual([]);
  const longer = { ...config, phases: [{ ...phase, config: { maxSteps: 9 } }] };
  expect(await keepRunConfig(longer)).toEqual([
    "phases.0.config.maxSteps: 9, where the run was begun with 5",
  ]);
  const added = { ...config, validation: "x", phases: [{ ...phase, validation: "held.jsonl" }] };
  expect(await keepRunConfig(added)).toContain(
    'phases.0.validation: "held.jsonl", where the run was begun with nothing',
  );
  const other = { ...config, lora: { rank: 8, targetModules: ["q_proj"] } };
  await expect(keepRunConfig(other)).rejects.toThrow(
    "train.yaml: got lora.rank 8, expected lora.rank 4, as the run was begun with",
  );
  expect(await written()).toEqual(kept);
  expect(await keepRunConfig({ ...other, resume: "never" })).toEqual([]);
  expect(await written()).toMatchObject({ lora: { rank: 8 } });
  expect((await readdir(run_dir)).sort()).toEqual(["checkpoints", "train.1.yaml", "train.yaml"]);
});

it("keeps and tells no credentials of a logger's address", async () => {
  const to = (trackingUri: string): TrainConfig => ({
    model: "owner/name",
    run_dir,
    seed: 42,
    resume: "auto",
    config: {},
    periodic_eval: {},
    loggers: { mlflow: { trackingUri } },
    phases: [{ phase: "em", method: "sft", dataset: "em.jsonl", config: {} }],
  });
  await keepRunConfig(to("https://me:hunt@er2@mlflow:5000/team?of=a@b"));
  await mkdir(join(run_dir, "checkpoints"));
  const text = await readFile(join(run_dir, "train.yaml"), "utf8");
  expect(text).toContain("trackingUri: https://mlflow:5000/team?of=a@b\n");
  expect(text).not.toMatch(/me:|hunt|er2/);
  expect(await keepRunConfig(to("https://me:changed@mlflow:5000/team?of=a@b"))).toEqual([]);
  const [told] = await keepRunConfig(to("https://me:hunter2@elsewhere"));
  expect(told).toContain('"https://elsewhere"');
  expect(told).not.toContain("hunter2");
});
