import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EvaluableModel } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { openCheckpoint, useBackend } from "@periodic-eval/models";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { scriptedServer } from "../../../../remote/src/engine/scripted-server.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { watchArgs, writeCheckpoint } from "./written-checkpoints.test-data.ts";

it("measures adapters on a vLLM server as in this process", async () => {
  await useBackend({ backend: "wasm" });
  const root = temporaryFolder();
  const config = join(root, "block.yaml");
  const block = { eval_every_percent: 50, questions: microWorld("questions.jsonl"), subsample_n: 8 };
  await writeFile(config, JSON.stringify({ periodic_eval: block }));
  const checkpoints = join(root, "checkpoints");
  const opened = [await openCheckpoint(microWorld())];
  const models = new Map<string, EvaluableModel>();
  for (const step of [1, 2]) {
    const path = await writeCheckpoint(checkpoints, { kind: "adapter", step, maxSteps: 2 });
    opened.push(await openCheckpoint(microWorld(), path));
    models.set(path, opened.at(-1)!.model);
  }
  const [base, first] = [opened[0]!.model, opened[1]!.model];
  const { url, received } = await scriptedServer({
    model: base,
    root: microWorld(),
    contextLimit: base.contextLength! + 2,
    // The engine first tries each kind of module with an adapter of its own.
    adapterModel: (folder) => models.get(folder) ?? first,
  });
  const watch = async (runDir: string, ...args: readonly string[]) => {
    const { code, err } = await runCommand(
      watchArgs(checkpoints, { config, runDir: join(root, runDir) }, ...args),
    );
    expect([code, err]).toEqual([0, ""]);
    const { phases } = await readRun(join(root, runDir));
    return phases[0]!.snapshots;
  };
  const inProcess = await watch("in-process", "--backend", "wasm");
  const served = await watch("served", "--engine", url);
  expect(served.map(({ step, served: isServed }) => [step, isServed])).toEqual([
    [0, true],
    [1, true],
    [2, true],
  ]);
  for (const [at, { metrics, paired }] of served.entries()) {
    for (const [name, { value }] of Object.entries(metrics))
      expect(value).toBeCloseTo(inProcess[at]!.metrics[name]!.value!, 4);
    expect(paired.baseline === null).toBe(at === 0);
  }
  const paths = received.map(({ path }) => path);
  const count = (name: string) => paths.filter((path) => path === name).length;
  expect(count("/v1/unload_lora_adapter")).toBe(count("/v1/load_lora_adapter"));
  for (const checkpoint of opened) await checkpoint.dispose();
});
