import { periodicEvalConfig } from "@periodic-eval/core";
import { readConfigFile } from "@periodic-eval/core/config";
import { parseSFTConfig } from "@periodic-eval/trainers";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { parseTrainingFile } from "../train/training-file.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "init-"));
});
afterAll(() => rm(folder, { recursive: true }));

const init = (...args: string[]) => runCommand(["init", ...args]);

it("writes a training file that is valid, holds the defaults and names the shipped schema", async () => {
  const path = join(folder, "new/train.yaml");
  const { code, out } = await init(path);
  expect(code).toBe(0);
  expect(out).toContain(`periodic-eval train ${path}`);
  const { config, errors } = parseTrainingFile(await readConfigFile(path));
  expect(errors).toEqual([]);
  expect(config).toMatchObject({ seed: 42, resume: "auto", run_dir: join(folder, "new/runs/1") });
  const { budget, ...block } = periodicEvalConfig(config, "train");
  const { budget: _, ...defaults } = periodicEvalConfig({}, "train");
  expect(block).toEqual(defaults);
  expect(budget).toEqual({ overhead_percent: 20, grace_seconds: 60 });
  expect(parseSFTConfig(config.config)).toEqual({ ...parseSFTConfig(), maxSteps: 200 });
  const [, schema] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(await readFile(path, "utf8"))!;
  expect(resolve(dirname(path), schema!)).toBe(
    resolve(import.meta.dirname, "../../../dist/train.schema.json"),
  );
  expect(existsSync(resolve(dirname(path), schema!))).toBe(true);
});

it("refuses to replace a file without --force, and refuses what is no YAML file", async () => {
  const path = join(folder, "train.yml");
  expect((await init(path)).code).toBe(0);
  const again = await init(path);
  expect(again.code).toBe(1);
  expect(again.err).toContain(`${path}: got a file that exists, expected a new file.`);
  expect((await init(path, "--force")).code).toBe(0);
  expect((await init(join(folder, "train.json"))).err).toContain("expected a YAML file");
  await mkdir(join(folder, "folder.yaml"));
  expect((await init(join(folder, "folder.yaml"), "--force")).code).toBe(1);
});
