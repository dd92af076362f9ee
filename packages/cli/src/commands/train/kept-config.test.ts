import { mkdir, readFile, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { parse } from "yaml";
import { openKeptConfig } from "./kept-config.ts";
import type { TrainConfig } from "./training-file.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

let run_dir = "";
beforeEach(() => void (run_dir = temporaryFolder()));

it("writes the current and previous configuration, lists differences, and rejects another model", async () => {
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
  const { resume: _resume, ...stored } = config;
  const written = async (name = "train.yaml") =>
    parse(await readFile(join(run_dir, name), "utf8")) as unknown;
  const differences = async (changed: TrainConfig) => (await openKeptConfig(changed)).differences;
  expect(await differences({ ...config, model: "owner/nmae" })).toEqual([]);
  expect(await differences(config)).toEqual([]);
  await mkdir(join(run_dir, "checkpoints"));
  expect(await written()).toEqual(stored);
  expect(await differences({ ...config, backend: "wasm" })).toEqual([]);
  const phases = [{ ...phase, config: { maxSteps: 9 }, validation: "held.jsonl" }];
  const longer = await openKeptConfig({ ...config, phases });
  expect(longer.differences).toEqual([
    "phases.0.config.maxSteps: 9 (before: 5)",
    'phases.0.validation: "held.jsonl" (before: not set)',
  ]);
  // The trainer may still reject the new configuration.
  expect(await written()).toEqual(stored);
  await longer.keep();
  await longer.keep();
  expect(await written()).toEqual({ ...stored, phases });
  expect(await written("train.1.yaml")).toEqual(stored);
  expect(await differences({ ...config, phases })).toEqual([]);
  const other = { ...config, lora: { rank: 8, targetModules: ["q_proj"] } };
  await expect(openKeptConfig(other)).rejects.toThrow(
    "train.yaml: got lora.rank 8, expected lora.rank 4, as at the start of the run",
  );
  const restarted = await openKeptConfig({ ...other, resume: "never" });
  expect(restarted.differences).toEqual([]);
  await restarted.keep();
  expect(await written()).toMatchObject({ lora: { rank: 8 } });
  expect(await written("train.2.yaml")).toEqual({ ...stored, phases });
  expect((await readdir(run_dir)).sort()).toEqual([
    "checkpoints",
    "train.1.yaml",
    "train.2.yaml",
    "train.yaml",
  ]);
});

it("neither stores nor prints credentials of a logger's URL", async () => {
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
  await openKeptConfig(to("https://me:hunt@er2@mlflow:5000/team?of=a@b"));
  await mkdir(join(run_dir, "checkpoints"));
  const yaml = await readFile(join(run_dir, "train.yaml"), "utf8");
  expect(yaml).toContain("trackingUri: https://mlflow:5000/team?of=a@b\n");
  expect(yaml).not.toMatch(/me:|hunt|er2/);
  const same = await openKeptConfig(to("https://me:changed@mlflow:5000/team?of=a@b"));
  expect(same.differences).toEqual([]);
  const { differences, keep } = await openKeptConfig(to("https://me:hunter2@elsewhere"));
  const [difference] = differences;
  expect(difference).toContain('"https://elsewhere"');
  expect(difference).not.toContain("hunter2");
  await keep();
  expect(await readFile(join(run_dir, "train.yaml"), "utf8")).not.toContain("hunter2");
});

const smallest = (): TrainConfig => ({
  model: "owner/name",
  run_dir,
  seed: 42,
  resume: "auto",
  config: {},
  loggers: {},
  phases: [{ phase: "em", method: "sft", dataset: "em.jsonl", config: {} }],
});

it("copies a train.yaml of the user in the run's folder before it writes its own, once", async () => {
  const mine = "# my comment\nmodel: owner/name\n";
  await writeFile(join(run_dir, "train.yaml"), mine);
  const { differences } = await openKeptConfig(smallest());
  expect(differences).toEqual([expect.stringContaining(join(run_dir, "train.1.yaml"))]);
  expect(await readFile(join(run_dir, "train.1.yaml"), "utf8")).toBe(mine);
  expect((await openKeptConfig(smallest())).differences).toEqual([]);
  expect((await readdir(run_dir)).sort()).toEqual(["train.1.yaml", "train.yaml"]);
});

it("reports a run_dir that is a link to itself", async () => {
  run_dir = join(run_dir, "link");
  await symlink(run_dir, run_dir);
  await expect(openKeptConfig(smallest())).rejects.toMatchObject({ code: "store", where: run_dir });
});

it("names file and line of a damaged train.yaml of the run", async () => {
  await mkdir(join(run_dir, "checkpoints"));
  await writeFile(join(run_dir, "train.yaml"), "model: a\nlora: [\n");
  await expect(openKeptConfig({ run_dir, model: "a" } as TrainConfig)).rejects.toMatchObject({
    code: "config",
    where: `${join(run_dir, "train.yaml")}:3`,
  });
});
