import { mkdir, mkdtemp, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import {
  dataOf,
  deep,
  expectModelOrError,
  headerOf,
  modelErrorOf,
  safetensorsOf,
  watchFilesAndMemory,
  watchTensors,
  withChangedHeader,
} from "../testing/hostile.test-data.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";
import { loadLora } from "./load-lora.ts";
import { withLora } from "./with-lora.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

vi.mock("node:fs/promises", async (original) => {
  const { recorded } = await import("../testing/opened-files.test-data.ts");
  return recorded(await original());
});

type Config = Record<string, unknown>;

const weightsName = "adapter_model.safetensors";
const configName = "adapter_config.json";
const root = temporaryFolder(afterAll);
let folder = "";
let model: CheckpointLM;
let good: Buffer;
let config: Config;
beforeAll(async () => {
  await useBackend({ backend: "cpu" });
  model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
  const lora = withLora(model, { rank: 2, targetModules: ["q_proj", "v_proj"] });
  await lora.save(join(root, "good"));
  lora.dispose();
  good = await readFile(join(root, "good", weightsName));
  config = JSON.parse(await readFile(join(root, "good", configName), "utf8")) as Config;
});
afterAll(async () => {
  model.dispose();
});
beforeEach(async () => {
  folder = await mkdtemp(join(root, "case-"));
  await writeFile(join(folder, configName), JSON.stringify(config));
  await writeFile(join(folder, weightsName), good);
});
watchFilesAndMemory(() => folder);
watchTensors();

const loadError = () => modelErrorOf(() => loadLora(model, folder));
const writeConfig = (content: unknown) =>
  writeFile(join(folder, configName), typeof content === "string" ? content : JSON.stringify(content));
const changeConfig = (change: Config) => writeConfig({ ...config, ...change });
const writeWeights = (content: Buffer) => writeFile(join(folder, weightsName), content);

const name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
const file = (header: string | object, data = dataOf(good), length?: bigint) =>
  safetensorsOf(header, data, length);
const withEntry = (change: object, tensor = name): Buffer => {
  const header = headerOf(good);
  return file({ ...header, [tensor]: { ...header[tensor]!, ...change } });
};
const renamed = (to: string, from = name): Buffer => {
  const { [from]: entry, ...rest } = headerOf(good);
  return file({ ...rest, [to]: entry });
};

it("loads the valid adapter that the other cases change", async () => {
  (await loadLora(model, folder)).dispose();
});

describe("loading rejects an adapter", () => {
  it.each(Array.from({ length: 12 }, (_, i) => i / 12))("whose weights are cut off at %f", async (share) => {
    await writeWeights(good.subarray(0, Math.floor(share * good.length)));
    expect((await loadError()).where).toContain(weightsName);
  });

  it.each(Array.from({ length: 20 }, (_, i) => i))(
    "with changed bytes in the header, unless they change nothing, seed %i",
    async (seed) => {
      await writeWeights(withChangedHeader(good, seed, 1 + (seed % 3)));
      await expectModelOrError(() => loadLora(model, folder));
    },
  );

  const other = name.replace("layers.0", "layers.1");
  const changedWeights: readonly (readonly [string, () => Buffer])[] = [
    ["an empty file", () => Buffer.alloc(0)],
    ["a header of 10 GB", () => file("{}", Buffer.alloc(0), 10_000_000_000n)],
    ["a header of 2^64 − 1 bytes", () => file("{}", Buffer.alloc(0), 2n ** 64n - 1n)],
    ["no tensors", () => file("{}", Buffer.alloc(0))],
    ["a deeply nested header", () => file(deep("[", "]", 1_000_000))],
    ["bytes of another tensor", () => withEntry({ data_offsets: headerOf(good)[other]!.data_offsets })],
    ["offsets beyond the file", () => withEntry({ data_offsets: [1e12, 1e12 + 64] })],
    ["the dtype I8", () => withEntry({ dtype: "I8", shape: [2, 32] })],
    ["the dtype I32", () => withEntry({ dtype: "I32" })],
    ["the dtype F8_E4M3", () => withEntry({ dtype: "F8_E4M3" })],
    ["a transposed A", () => withEntry({ shape: [8, 2] })],
    ["a rank of 4", () => withEntry({ shape: [4, 4] })],
    ["three dimensions", () => withEntry({ shape: [2, 2, 4] })],
    ["one dimension", () => withEntry({ shape: [16] })],
    ["a rank of 2^53", () => withEntry({ shape: [2 ** 53 - 1, 8] })],
    ["a rank of 0", () => withEntry({ shape: [0, 8] })],
    ["an unknown layer", () => renamed(name.replace("layers.0", "layers.7"))],
    ["an unknown module", () => renamed(name.replace("q_proj", "x_proj"))],
    ["a module that is not a target", () => renamed(name.replace("q_proj", "k_proj"))],
    ["DoRA's magnitudes", () => renamed(name.replace("lora_A.weight", "lora_magnitude_vector"))],
    ["an adapter of the embedding", () => renamed("base_model.model.model.embed_tokens.lora_embedding_A")],
    ["a name without PEFT's prefix", () => renamed(name.replace("base_model.model.", ""))],
    ["a name that contains the adapter's name", () => renamed(name.replace("lora_A", "lora_A.default"))],
    ["a path as a name", () => renamed("../../../../etc/passwd")],
    ["a name with a path in it", () => renamed(name.replace("q_proj", "../q_proj"))],
    ["a name with a zero byte", () => renamed(`${name}\0`)],
    ["the name __proto__", () => file(JSON.stringify(headerOf(good)).replace(name, "__proto__"))],
    ["a name of a megabyte", () => renamed("x".repeat(1_000_000))],
    [
      "the model's own weight of a module",
      () => renamed("base_model.model.model.layers.0.self_attn.q_proj.weight"),
    ],
    ["another head", () => renamed("base_model.model.lm_head.weight")],
    [
      "an additional tensor",
      () => {
        const header = headerOf(good);
        const end = dataOf(good).length;
        const entry = { dtype: "F32", shape: [1], data_offsets: [end, end + 4] };
        return file({ ...header, extra: entry }, Buffer.concat([dataOf(good), Buffer.alloc(4)]));
      },
    ],
  ];
  it.each(changedWeights)("with %s", async (_, content) => {
    await writeWeights(content());
    expect((await loadError()).where).toContain(weightsName);
  });

  it("with a terabyte of weights in a sparse file", async () => {
    const terabyte = 2 ** 40;
    const header = JSON.stringify({
      [name]: { dtype: "F32", shape: [terabyte / 32, 8], data_offsets: [0, terabyte] },
    });
    await writeWeights(file(header, Buffer.alloc(0)));
    await truncate(join(folder, weightsName), 8 + header.length + terabyte).catch(() => undefined);
    await loadError();
  });

  it.each(["a folder", "a link to itself", "missing"])("whose weights are %s", async (kind) => {
    const path = join(folder, weightsName);
    await rm(path);
    if (kind === "a folder") await mkdir(path);
    if (kind === "a link to itself") await symlink(weightsName, path);
    await loadError();
  });

  it("whose weights are pickled, and gives the reason", async () => {
    await rm(join(folder, weightsName));
    await writeFile(join(folder, "adapter_model.bin"), "");
    const { got, expected } = await loadError();
    expect(got).toBe("only adapter_model.bin, a pickled checkpoint");
    expect(expected).toContain("unpickling a file runs the code in it");
  });
});

describe("loading an adapter rejects an adapter_config.json", () => {
  it.each([
    [""],
    ["{"],
    ["null"],
    ["[]"],
    ["7"],
    ["{}"],
    ["NaN"],
    ['{"r": NaN}'],
    ["\uFEFF{}"],
    [deep("[", "]", 1_000_000)],
    [`{"rank_pattern":${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}}`],
  ])("with the content %.40s", async (text) => {
    await writeConfig(text);
    expect((await loadError()).where).toContain(configName);
  });

  const wrong: readonly Config[] = [
    ...[0, -1, 1.5, 1e9, 2 ** 53, 1e308, "8", "NaN", true, null, [], {}, [8]].map((r) => ({ r })),
    ...[0, -1, "16", "NaN", true, null, [], {}].map((lora_alpha) => ({ lora_alpha })),
    ...[-0.1, 1, 2, "0.1", true, null, [0.1]].map((lora_dropout) => ({ lora_dropout })),
    ...[null, "", [], {}, 7, true, [7], [null], ["nothing"], "nothing", "q_proj"].map((target_modules) => {
      return { target_modules };
    }),
    ...["(", "(a)\\1", "(?i)b", "[a"].map((target_modules) => {
      return { target_modules };
    }),
    // Modules that differ from those of the file.
    ...["all-linear", ["q_proj"], ["q_proj", "v_proj", "k_proj"], ["lm_head"]].map((target_modules) => {
      return { target_modules };
    }),
    // Modules that are not linear maps.
    ...[["embed_tokens"], ["norm"], ["self_attn"], ".*", "model"].map((target_modules) => ({
      target_modules,
    })),
    ...[7, { a: 1 }, ["q_proj"], "(", [7]].map((exclude_modules) => ({ exclude_modules })),
    ...[
      7,
      "a",
      [1],
      { q_proj: 0 },
      { q_proj: -1 },
      { q_proj: 1e9 },
      { q_proj: "4" },
      { q_proj: null },
      { "(": 4 },
    ].map((rank_pattern) => ({ rank_pattern })),
    ...[7, [1], { q_proj: 0 }, { q_proj: "4" }, { q_proj: null }, { "(?i)a": 4 }].map((alpha_pattern) => {
      return { alpha_pattern };
    }),
    ...[-1, 1.5, 9, "0", {}, [0, "1"], [[0]]].map((layers_to_transform) => ({ layers_to_transform })),
    { layers_pattern: "layers" },
    { layers_pattern: 7, layers_to_transform: [0, 1] },
    { layers_pattern: "h", layers_to_transform: [0, 1] },
    ...["yes", 1, [], {}].map((use_rslora) => ({ use_rslora })),
    { lora_bias: true },
    { lora_bias: "all" },
    ...["LOHA", "ADALORA", null, 7, ["LORA"], "lora"].map((peft_type) => ({ peft_type })),
    ...["SEQ_CLS", 7, {}].map((task_type) => ({ task_type })),
    ...["all", "lora_only", true].map((bias) => ({ bias })),
    ...["pissa", "pissa_niter_16", "olora", "loftq", "corda", "lora_ga", "mica", 7].map(
      (init_lora_weights) => {
        return { init_lora_weights };
      },
    ),
    ...[["lm_head"], ["embed_tokens"], ["norm"], ["self_attn"], "lm_head", [7], {}].map((modules_to_save) => {
      return { modules_to_save };
    }),
    ...["use_dora", "use_qalora", "ensure_weight_tying", "use_something_new"].map((key) => ({ [key]: true })),
    { alora_invocation_tokens: [1, 2] },
    { arrow_config: { top_k: 3 } },
    { corda_config: { method: "kpm" } },
    { kasa_config: { beta: 1 } },
    { lora_ga_config: { direction: "ArBr" } },
    { loftq_config: { loftq_bits: 4 } },
    { megatron_config: { hidden_size: 8 } },
    { monteclora_config: { num_samples: 8 } },
    { velora_config: { rank: 1 } },
    { use_bdlora: { nblocks: 2 } },
    { layer_replication: [[0, 2]] },
    { target_parameters: ["experts.down_proj"] },
    { trainable_token_indices: [1] },
    { something_new: "on" },
  ];
  it.each(wrong.map((change) => [JSON.stringify(change).slice(0, 70), change] as const))(
    "with %s",
    async (_, change) => {
      await changeConfig(change);
      const { where } = await loadError();
      expect(where).toContain(folder);
      // A change of only shapes or modules shows in the weights; the error for any other change names its key.
      const [[key, value]] = Object.entries(change) as [[string, unknown]];
      const isInWeights = where.includes(weightsName);
      expect(
        isInWeights || where.includes(key) || /layers_(pattern|to_transform)|target_modules/.test(where),
        where,
      ).toBe(true);
      if (key.startsWith("use_") || typeof value === "boolean") expect(isInWeights).toBe(false);
    },
  );
});

describe("loading an adapter", () => {
  it("opens no files that its configuration names", async () => {
    await changeConfig({ base_model_name_or_path: "/etc/passwd", revision: "../../x" });
    const lora = await loadLora(model, folder);
    expect(lora.adapter).toMatch(/^case-\w+ of \/etc\/passwd$/);
    lora.dispose();
  });

  it("accepts unknown keys that are empty, and keys that are names of Object.prototype", async () => {
    const text = JSON.stringify({ ...config, constructor: {}, use_later: false, later: null, more: [] });
    await writeConfig(text.replace("{", '{"__proto__":{},'));
    const lora = await loadLora(model, folder);
    expect({}).not.toHaveProperty("polluted");
    lora.dispose();
  });
});
