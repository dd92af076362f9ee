import type { EvaluableModel, PeriodicEvalError } from "@periodic-eval/core";
import { fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { writeSafetensors } from "@periodic-eval/safetensors";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { thisProcess } from "@periodic-eval/store";
import { openAICompatible, vllm } from "../index.ts";
import { scriptedServer, type ScriptedServerOptions } from "./scripted-server.test-data.ts";

const tokenizer = fakeTokenizer();
const model = fakeModel({ tokenizer });
const live = () => ({ signal: new AbortController().signal });
const requests = [
  { context: { text: "The capital of France is" }, continuation: " Paris" },
  { context: { text: "Two and two make" }, continuation: " four" },
];
const sums = async (asked: EvaluableModel) =>
  (await asked.logLikelihoods!(requests, live())).map(({ sumNats }) => sumNats);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "adapters-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Saves an adapter as PEFT does, on modules of two layers. */
async function saveAdapter(name: string, kinds: readonly string[], config: object = {}): Promise<string> {
  const path = join(folder, name);
  mkdirSync(path);
  const tensors = ["0", "1"].flatMap((layer) =>
    kinds.flatMap((kind) => {
      const stem = `base_model.model.model.layers.${layer}.self_attn.${kind}`;
      return [
        { name: `${stem}.lora_A.weight`, shape: [2, 4], values: () => new Float32Array(8).fill(name.length) },
        { name: `${stem}.lora_B.weight`, shape: [6, 2], values: () => new Float32Array(12) },
      ];
    }),
  );
  const settings = {
    peft_type: "LORA",
    r: 2,
    lora_alpha: 4,
    target_modules: kinds,
    base_model_name_or_path: "tiny",
  };
  writeFileSync(join(path, "adapter_config.json"), JSON.stringify({ ...settings, ...config }));
  await writeSafetensors(join(path, "adapter_model.safetensors"), tensors);
  return path;
}

const configOf = (path: string) =>
  JSON.parse(readFileSync(join(path, "adapter_config.json"), "utf8")) as {
    readonly target_modules: readonly string[];
    readonly r: number;
    readonly lora_alpha: number;
    readonly rank_pattern?: Readonly<Record<string, number>>;
    readonly alpha_pattern?: Readonly<Record<string, number>>;
  };

/** The model of a server that ignores some kinds of modules, or patterns. Its numbers depend on the content of the adapter. */
const adapterModel =
  (ignored: readonly string[] = []) =>
  (path: string): EvaluableModel => {
    const config = configOf(path);
    const kinds = config.target_modules.filter((kind) => !ignored.includes(kind));
    const { rank_pattern: ranks = {}, alpha_pattern: alphas = {} } = ignored.includes("patterns")
      ? {}
      : config;
    const scales = kinds.map((kind) => (alphas[kind] ?? config.lora_alpha) / (ranks[kind] ?? config.r));
    const content = readFileSync(join(path, "adapter_model.safetensors"));
    const hash = createHash("sha256").update(content).digest("hex");
    const weights = `${kinds.join()} ${scales.join()} ${hash}`;
    return kinds.length === 0 ? model : fakeModel({ tokenizer, weights: () => weights });
  };

const serve = (options: Partial<ScriptedServerOptions> = {}) =>
  scriptedServer({ model, adapterModel: adapterModel(), ...options });
const connect = (...urls: readonly string[]) => vllm({ urls, model: "base", tokenizer, maxRetries: 4 });

it("opens adapters under new names, with their numbers and the base's, and unloads them", async () => {
  const [one, two] = [await serve(), await serve()];
  const served = await connect(one.url, two.url);
  const paths = [await saveAdapter("a", ["q_proj"]), await saveAdapter("bb", ["q_proj", "v_proj"])];
  const names = new Set<string>();
  for (const path of [...paths, paths[0]!]) {
    const opened = await served.openCheckpoint("base", path);
    expect(one.adapters()).toEqual(two.adapters());
    expect(one.adapters()).toHaveLength(1);
    names.add(one.adapters()[0]!);
    expect(await sums(opened.model)).toEqual(await sums(adapterModel()(path)));
    expect(await sums(opened.model.base!)).toEqual(await sums(model));
    expect(opened.model.identity).toMatchObject({
      name: "base",
      adapter: path,
      weights: await opened.fingerprint!(),
    });
    expect(await opened.baseFingerprint!()).toBe(served.identity.weights);
    await opened.dispose!();
    expect([...one.adapters(), ...two.adapters()]).toEqual([]);
  }
  expect(names.size).toBe(3);
  // The folders of trial adapters are removed.
  expect(readdirSync(folder).sort()).toEqual(["a", "bb"]);
  await served.dispose();
});

it("has equal fingerprints for equal weights only", async () => {
  const { url } = await serve();
  const served = await connect(url);
  const a = await saveAdapter("a", ["q_proj"]);
  cpSync(a, join(folder, "copy"), { recursive: true });
  const of = async (path: string) => (await served.openCheckpoint("base", path)).fingerprint!();
  expect(await of(a)).toBe(await of(join(folder, "copy")));
  expect(await of(a)).not.toBe(await of(await saveAdapter("bb", ["q_proj"])));
  expect((await served.openCheckpoint("base")).fingerprint!()).toBe(served.identity.weights);
  await served.dispose();
});

it("never has requests of the base and of an adapter in flight together on a replica", async () => {
  const [one, two] = [await serve({ delay: 2 }), await serve({ delay: 2 })];
  const served = await connect(one.url, two.url);
  const opened = await served.openCheckpoint("base", await saveAdapter("a", ["q_proj"]));
  const many = Array.from({ length: 200 }, (_, index) => ({
    context: { text: `${index}` },
    continuation: " yes",
  }));
  const asked = [opened.model, served, opened.model, served].map((each) =>
    each.logLikelihoods!(many, live()),
  );
  await Promise.all(asked);
  expect([one.state.mixed, two.state.mixed]).toEqual([0, 0]);
  expect(one.state.most).toBeGreaterThan(1);
  await served.dispose();
});

it("refuses an adapter on a module that the server ignores, and leaves nothing loaded", async () => {
  const { url, adapters } = await serve({ adapterModel: adapterModel(["lm_head"]) });
  const served = await connect(url);
  await expect(
    served.openCheckpoint("base", await saveAdapter("a", ["q_proj", "lm_head"])),
  ).rejects.toMatchObject({
    code: "model",
    got: `a server, ${url}, that ignores adapters on lm_head`,
  });
  expect(adapters()).toEqual([]);
});

it.each<[string, object]>([
  ["use_dora", { use_dora: true }],
  ["modules_to_save", { modules_to_save: ["lm_head"] }],
  ["bias", { bias: "all" }],
  ["peft_type", { peft_type: "IA3" }],
  ["init_lora_weights", { init_lora_weights: "pissa" }],
  ["a_new_setting", { a_new_setting: 1 }],
])("refuses an adapter with %s, which servers ignore or read differently", async (key, config) => {
  const { url, received } = await serve();
  const served = await connect(url);
  await expect(
    served.openCheckpoint("base", await saveAdapter("a", ["q_proj"], config)),
  ).rejects.toMatchObject({
    code: "model",
    path: [key],
  });
  expect(received.some(({ path }) => path === "/v1/load_lora_adapter")).toBe(false);
});

it("opens an adapter with patterns on a server that reads them, and refuses it on one that ignores them", async () => {
  const config = { rank_pattern: { q_proj: 2 }, alpha_pattern: { q_proj: 3 }, r: 8 };
  const path = await saveAdapter("a", ["q_proj", "v_proj"], config);
  const plain = await saveAdapter("bb", ["q_proj", "v_proj"]);
  const reading = await serve();
  const served = await connect(reading.url);
  await served.openCheckpoint("base", plain);
  const opened = await served.openCheckpoint("base", path);
  expect(await sums(opened.model)).toEqual(await sums(adapterModel()(path)));
  await served.dispose();
  const ignoring = await serve({ adapterModel: adapterModel(["patterns"]) });
  const other = await connect(ignoring.url);
  await other.openCheckpoint("base", plain);
  await expect(other.openCheckpoint("base", path)).rejects.toMatchObject({
    code: "model",
    got: `a server, ${ignoring.url}, that ignores rank_pattern and alpha_pattern`,
  });
  await other.dispose();
  expect([reading.adapters(), ignoring.adapters()]).toEqual([[], []]);
});

it("accepts the empty settings that PEFT writes", async () => {
  const { url } = await serve();
  const served = await connect(url);
  const config = {
    rank_pattern: {},
    use_dora: false,
    modules_to_save: null,
    bias: "none",
    loftq_config: {},
    lora_dropout: 0.1,
  };
  await (
    await served.openCheckpoint("base", await saveAdapter("a", ["q_proj"], config))
  ).dispose!();
});

it.each<
  [
    string,
    (served: { base: string; path: string }) => readonly [string, string | null],
    Partial<PeriodicEvalError>,
  ]
>([
  ["another base model", ({ path }) => ["other", path], { code: "model" }],
  ["a folder without an adapter", ({ base }) => [base, tmpdir()], { code: "model" }],
  ["a folder that does not exist", ({ base }) => [base, "/no/such/folder"], { code: "model" }],
])("throws for %s", async (_, of, expected) => {
  const { url } = await serve();
  const served = await connect(url);
  const [base, path] = of({ base: "base", path: await saveAdapter("a", ["q_proj"]) });
  await expect(served.openCheckpoint(base, path)).rejects.toMatchObject(expected);
});

it("warns of an adapter whose base has another name", async () => {
  const { url } = await serve();
  const served = await connect(url);
  const path = await saveAdapter("a", ["q_proj"], { base_model_name_or_path: "owner/other" });
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  await (await served.openCheckpoint("base", path)).dispose?.();
  expect(warn.mock.calls.flat()).toEqual([
    expect.stringContaining('was trained on "owner/other" and is measured on'),
  ]);
  warn.mockRestore();
});

it.each<[string, number, string | undefined, string]>([
  ["without hot adapters", 404, undefined, "VLLM_ALLOW_RUNTIME_LORA_UPDATING"],
  ["that cannot read the folder", 404, "No adapter found", "at the same path"],
  ["with a lower rank", 500, "rank 8 is too high", "--max-lora-rank"],
])("says how to start a server %s", async (_, status, message, fix) => {
  const { url } = await serve({
    fault: ({ path }) =>
      path === "/v1/load_lora_adapter"
        ? message === undefined
          ? { status, body: '{"detail": "Not Found"}' }
          : { status, message }
        : null,
  });
  const served = await vllm({ urls: url, model: "base", tokenizer, maxRetries: 0 });
  await expect(served.openCheckpoint("base", await saveAdapter("a", ["q_proj"]))).rejects.toMatchObject({
    code: "model",
    fix: expect.stringContaining(fix) as string,
  });
});

it("loads an adapter again onto a server that restarted", async () => {
  const first = await serve();
  const served = await connect(first.url);
  const path = await saveAdapter("a", ["q_proj"]);
  const opened = await served.openCheckpoint("base", path);
  first.close();
  const again = await serve({ port: first.port });
  expect(await sums(opened.model)).toEqual(await sums(adapterModel()(path)));
  again.models.delete(again.adapters()[0]!);
  expect(await sums(opened.model)).toEqual(await sums(adapterModel()(path)));
  await served.dispose();
  expect(again.adapters()).toEqual([]);
});

it("refuses replicas that read different adapters", async () => {
  const one = await serve();
  const two = await serve({
    adapterModel: (path) => fakeModel({ tokenizer, weights: () => `other ${path}` }),
  });
  const served = await connect(one.url, two.url);
  await expect(served.openCheckpoint("base", await saveAdapter("a", ["q_proj"]))).rejects.toMatchObject({
    code: "model",
    expected: "at most 0.0010",
  });
  expect([...one.adapters(), ...two.adapters()]).toEqual([]);
});

it("unloads what a crashed process of this system left, and nothing else", async () => {
  const server = await serve();
  const dead = spawnSync(process.execPath, ["-e", ""]).pid;
  const start = (pid: number | string) => {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  };
  const { system } = thisProcess;
  const nameOf = (pid: number, started: string | undefined, at: string | null) =>
    `periodic-eval.${pid}.${started}.01234567-89ab.${at}`;
  const kept = [
    nameOf(process.pid, start("self"), system),
    nameOf(process.ppid, start(process.ppid), system),
    nameOf(dead, "1", "another-system"),
    "of-somebody-else",
  ];
  for (const name of [...kept, nameOf(dead, "1", system), nameOf(process.pid, "1", system)])
    server.models.set(name, model);
  await connect(server.url);
  expect(server.adapters()).toEqual(kept);
});

it("has no adapters on other servers with OpenAI's API", async () => {
  const { url } = await serve();
  const served = await openAICompatible({ urls: url, model: "base", tokenizer, apiKeyEnv: null });
  await expect(served.openCheckpoint("base", await saveAdapter("a", ["q_proj"]))).rejects.toMatchObject({
    code: "model",
  });
  expect((await served.openCheckpoint("base")).model.identity.engine).toBe("openai-compatible");
});
