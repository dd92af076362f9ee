import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EvaluableModel, OpenedModel } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { openCheckpoint, useBackend } from "@periodic-eval/models";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import {
  scriptedServer,
  type ScriptedServerOptions,
} from "../../../../remote/src/engine/scripted-server.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { builtMain } from "../../terminal/built-main.test-data.ts";

const root = temporaryFolder(afterAll);
const opened: Promise<OpenedModel>[] = [];
let base: EvaluableModel;
beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  const rows = readFileSync(microWorld("em.jsonl"), "utf8").split("\n").slice(0, 8);
  await writeFile(join(root, "rows.jsonl"), rows.join("\n"));
  opened.push(openCheckpoint(microWorld()));
  base = (await opened[0]!).model;
  sample = {
    ...base,
    nextToken: async (...asked) =>
      (await base.nextToken!(...asked)).map((next) => ({ ...next, nats: next.nats.map((nats) => nats - 1) })),
  };
});
afterAll(async () => {
  for (const checkpoint of opened) await (await checkpoint).dispose?.();
});

/** The engine first tries each kind of module with an adapter of its own. */
let sample: EvaluableModel;
/** Loads an adapter at the server's request. */
function adapterModel(folder: string): EvaluableModel {
  if (!/step_\d+$/.test(folder)) return sample;
  const loading = openCheckpoint(microWorld(), folder);
  opened.push(loading);
  return { ...base, nextToken: async (...asked) => (await loading).model.nextToken!(...asked) };
}

const serve = (more: Partial<ScriptedServerOptions> = {}) =>
  scriptedServer({
    model: base,
    root: microWorld(),
    adapterModel,
    contextLimit: base.contextLength! + 2,
    ...more,
  });

async function writeConfig(name: string, engine: string, lora = "lora: { rank: 2 }") {
  const config = join(root, `${name}.yaml`);
  await writeFile(
    config,
    `model: ${microWorld()}
backend: wasm
run_dir: runs/${name}
${lora}
${engine}
config: { maxSteps: 4, batchSize: 2, learningRate: 0.01, saveSteps: 2 }
periodic_eval:
  questions: ${microWorld("questions.jsonl")}
  subsample_n: 6
  eval_every_percent: 50
  budget: { overhead_percent: null }
phases:
  - { phase: em, dataset: rows.jsonl }
`,
  );
  return { config, runDir: join(root, "runs", name) };
}

async function train(name: string, engine: string, lora?: string) {
  const written = await writeConfig(name, engine, lora);
  return { ...(await runCommand(["train", written.config, "--json"])), ...written };
}

const bytesOf = (runDir: string) =>
  ["adapter_model", "optimizer", "trainables"].map((file) =>
    readFileSync(join(runDir, "checkpoints/em/step_4", `${file}.safetensors`), "hex"),
  );
const snapshotsOf = async (runDir: string) => (await readRun(runDir)).phases[0]!.snapshots;

it("trains with the same bits and measures the same on a server", { timeout: 120_000 }, async () => {
  const { url, received, adapters } = await serve();
  const inProcess = await train("in-process", "");
  expect(inProcess).toMatchObject({ code: 0 });
  const served = await train("served", `engine: { vllm: ["${url}"] }`);
  expect(served).toMatchObject({ code: 0 });
  expect(bytesOf(served.runDir)).toEqual(bytesOf(inProcess.runDir));
  const [expected, measured] = [await snapshotsOf(inProcess.runDir), await snapshotsOf(served.runDir)];
  expect(measured.map(({ step, status, served: isServed }) => [step, status, isServed])).toEqual(
    [0, 2, 4].map((step) => [step, "complete", true]),
  );
  for (const [at, { metrics, paired }] of measured.entries()) {
    for (const [name, { value }] of Object.entries(metrics))
      expect(value).toBeCloseTo(expected[at]!.metrics[name]!.value!, 4);
    expect(paired.baseline === null).toBe(at === 0);
  }
  const count = (path: string) => received.filter((request) => request.path === path).length;
  expect(count("/v1/unload_lora_adapter")).toBe(count("/v1/load_lora_adapter"));
  expect(adapters()).toEqual([]);
  expect(existsSync(join(served.runDir, "exports", "em"))).toBe(false);
});

const moments: readonly (readonly [string, RegExp])[] = [
  ["tries a kind of module", /\.probe\./],
  ["measures an adapter", /step_2$/],
];
it.each(moments)(
  "unloads and removes on resume what a process left that was killed while it %s",
  { timeout: 120_000 },
  async (_, loaded) => {
    let kill = () => {};
    let isKilled = false;
    const names = new Set<unknown>();
    const { url, adapters } = await serve({
      fault({ path, body }) {
        if (path === "/v1/load_lora_adapter" && loaded.test(String(body["lora_path"])))
          names.add(body["lora_name"]);
        if (isKilled || path !== "/v1/completions" || !names.has(body["model"])) return null;
        kill();
        return "stall";
      },
    });
    const name = `killed-${loaded.source.length}`;
    const { config, runDir } = await writeConfig(name, `engine: { vllm: "${url}" }`);
    const child = spawn(process.execPath, [builtMain(), "train", config], { stdio: "ignore" });
    kill = () => child.kill("SIGKILL");
    expect(await once(child, "close")).toEqual([null, "SIGKILL"]);
    expect(adapters().length).toBe(1);
    const exported = () => existsSync(join(runDir, "exports", "em"));
    expect(exported()).toBe(true);
    isKilled = true;
    const steps = async () => (await snapshotsOf(runDir)).map(({ step, status }) => [step, status]);
    expect(await runCommand(["train", config, "--json"])).toMatchObject({ code: 0 });
    expect(await steps()).toEqual([0, 2, 4].map((step) => [step, "complete"]));
    expect([adapters(), exported()]).toEqual([[], false]);
  },
);

it("names the line of engine without an adapter, of a wrong key, and of a server that lacks an ability", async () => {
  const engine = "engine: { vllm: http://127.0.0.1:1 }";
  const full = await train("full", engine, "");
  expect(full.code).toBe(1);
  expect(full.err).toContain(`${full.config}:5 engine: got engine without lora or adapter`);
  const flagged = await writeConfig("flagged", "", "");
  const { err } = await runCommand(["train", flagged.config, "--engine", "http://127.0.0.1:1"]);
  expect(err).toContain("[periodic-eval] --engine: got engine without lora or adapter");
  const wrong = await train("wrong", "engine: { vllm: http://127.0.0.1:1, besides: true }");
  expect(wrong.err).toContain(`${wrong.config}:5 engine.besides`);
  const { url } = await serve({
    fault: ({ body }) => (body["prompt_logprobs"] === undefined ? null : { status: 400 }),
  });
  const lacking = await train("lacking", `engine: { vllm: ${url} }`);
  expect(lacking.code).toBe(1);
  expect(lacking.err).toContain('evaluation "capability"');
});
