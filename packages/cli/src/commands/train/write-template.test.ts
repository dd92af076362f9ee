import { periodicEvalConfig } from "@periodic-eval/core";
import { readConfigFile } from "@periodic-eval/data/config";
import { parseSFTConfig } from "@periodic-eval/trainers";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { parseTrainingFile } from "./training-file.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

const init = (...args: string[]) => runCommand(["train", ...args, "--init"]);

const shipped = resolve(import.meta.dirname, "../../../dist/train.schema.json");

/** Returns the path of the schema that a file names. */
async function schemaOf(path: string): Promise<string> {
  const [, schema] = /^# yaml-language-server: \$schema=(\.\S+)\n/.exec(await readFile(path, "utf8"))!;
  return resolve(dirname(path), schema!);
}

it("writes a training file that is valid, holds the defaults and names a copy of the shipped schema", async () => {
  const path = join(folder, "a new/train.yaml");
  const { code, out } = await init(path);
  expect(code).toBe(0);
  expect(out).toContain(`npx periodic-eval train "${path}"`);
  const { config, errors } = parseTrainingFile(await readConfigFile(path));
  expect(errors).toEqual([]);
  expect(config).toMatchObject({ seed: 42, resume: "auto", run_dir: join(folder, "a new/runs/1") });
  const { budget, ...block } = periodicEvalConfig(config, "train");
  const { budget: _, ...defaults } = periodicEvalConfig({}, "train");
  expect(block).toEqual(defaults);
  expect(budget).toEqual({ overhead_percent: 20, grace_seconds: 60 });
  expect(parseSFTConfig(config.config)).toEqual({ ...parseSFTConfig(), maxSteps: 200 });
  const schema = await schemaOf(path);
  expect(dirname(schema)).toBe(dirname(path));
  expect(out).toContain(`wrote ${path} and ${schema}. `);
  expect(await readFile(schema, "utf8")).toBe(await readFile(shipped, "utf8"));
});

it("names the schema of the project's node_modules where the package is installed, and writes no copy", async () => {
  const project = join(folder, "project");
  const installed = join(project, "node_modules/periodic-eval/dist/train.schema.json");
  await mkdir(dirname(installed), { recursive: true });
  await writeFile(installed, "{}");
  for (const path of [join(project, "train.yaml"), join(project, "configs/a/train.yaml")]) {
    expect((await init(path)).code).toBe(0);
    expect(await schemaOf(path)).toBe(installed);
    expect(await readdir(dirname(path))).not.toContain("periodic-eval.train.schema.json");
  }
});

it("writes a file of which train names the missing model and the missing dataset at once", async () => {
  const path = join(folder, "unchanged/train.yaml");
  await init(path);
  const { code, err } = await runCommand(["train", path]);
  expect(code).toBe(1);
  const places = err.split("\n").map((line) => /train\.yaml:\d+ ([\w.]+)/.exec(line)?.[1]);
  expect(places).toEqual(["model", "phases.0.dataset"]);
});

it("refuses to replace a file, and refuses what is no YAML file", async () => {
  const path = join(folder, "train.yml");
  expect((await init(path)).code).toBe(0);
  const again = await init(path);
  expect(again.code).toBe(1);
  expect(again.err).toContain(`${path}: got a file that exists, expected a new file.`);
  expect((await init(join(folder, "train.json"))).err).toContain("expected a YAML file");
  await mkdir(join(folder, "folder.yaml"));
  expect((await init(join(folder, "folder.yaml"))).code).toBe(1);
});

it("names a folder that cannot be written to", async () => {
  await writeFile(join(folder, "file"), "");
  const { code, err } = await init(join(folder, "file/train.yaml"));
  expect([code, err]).toEqual([1, expect.stringContaining(`${join(folder, "file")}: got EEXIST (a file is`)]);
});
