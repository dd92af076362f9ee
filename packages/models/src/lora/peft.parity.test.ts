import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { openSafetensors } from "@periodic-eval/safetensors";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { openTensors } from "../checkpoint/tensors.ts";
import { reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { float32Fixtures, type ModelFixture } from "../testing/fixtures.test-data.ts";
import { largestDifference } from "../testing/largest-difference.test-data.ts";
import { askPython, needsPython, pythonHas } from "../testing/python.test-data.ts";
import { readByToken } from "../testing/read-by-token.test-data.ts";
import { loadLora } from "./load-lora.ts";
import { withLora } from "./with-lora.ts";

const tolerance = 2e-4;
const idsBelow = (vocabSize: number) => [1, 17, 300, 4, 511, 99, 42, 7, 256, 33].map((id) => id % vocabSize);

interface Case {
  readonly name: string;
  readonly base: ModelFixture;
  /** Options of PEFT's LoraConfig. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Whether PEFT merges an adapter on a tied head into the embedding too, which changes the model. */
  readonly isMergedElsewhere?: boolean;
}

const [tied, untied] = [{ tie_word_embeddings: true }, { tie_word_embeddings: false }];

/** Target modules by family: a list for its first model, then one for its second. */
const targetsOf: Readonly<Record<string, readonly (readonly string[])[]>> = {
  llama: [
    ["q_proj", "v_proj"],
    ["q_proj", "o_proj", "down_proj"],
  ],
  mistral: [["k_proj", "gate_proj"]],
  qwen2: [["q_proj", "up_proj"]],
  qwen3: [["o_proj", "v_proj"]],
  gpt2: [["c_attn"], ["c_attn", "c_proj", "c_fc"]],
  gpt_neox: [
    ["query_key_value", "dense"],
    ["dense_h_to_4h", "dense_4h_to_h"],
  ],
  gemma: [["q_proj", "down_proj"]],
  gemma2: [["k_proj", "o_proj"]],
  gemma3_text: [["v_proj", "up_proj"]],
  phi3: [["qkv_proj", "gate_up_proj"]],
  olmo2: [["q_proj", "gate_proj"]],
  smollm3: [["v_proj", "o_proj"]],
};

const families = Object.entries(targetsOf).flatMap(([family, lists]) => {
  const bases = float32Fixtures(family);
  return lists.flatMap((targets, i) => (bases[i] === undefined ? [] : [{ base: bases[i], targets }]));
});

/** Returns a case for the first model of a family whose configuration has these options. */
interface Wanted extends Omit<Case, "base"> {
  readonly family: string;
  readonly having?: Readonly<Record<string, unknown>>;
}

const wanted: readonly Wanted[] = [
  {
    name: "patterns of rank and alpha",
    family: "llama",
    having: untied,
    options: {
      r: 4,
      lora_alpha: 8,
      target_modules: ["q_proj", "k_proj", "down_proj", "up_proj"],
      rank_pattern: {
        "layers.0.self_attn.q_proj": 2,
        "^model.*k_proj": 7,
        "(up|down)_proj": 3,
        down_proj: 5,
      },
      alpha_pattern: { "layers\\.1\\..*": 3, up_proj: 1 },
    },
  },
  {
    name: "patterns of rank, rank-stabilized",
    family: "phi3",
    options: {
      lora_alpha: 16,
      use_rslora: true,
      target_modules: "all-linear",
      rank_pattern: { qkv_proj: 3, ".*\\.1\\.mlp\\.down_proj": 9 },
    },
  },
  {
    name: "an expression",
    family: "qwen3",
    options: {
      r: 3,
      target_modules: "^model\\.layers\\.(?!0\\b)\\d+\\.(?:self_attn\\.[qk]_proj|mlp\\.\\w{2,4}_proj)$",
    },
  },
  {
    name: "excluded modules",
    family: "olmo2",
    options: {
      r: 3,
      target_modules: ["q_proj", "k_proj", "v_proj"],
      exclude_modules: ["layers.0.self_attn.q_proj", "v_proj"],
    },
  },
  {
    name: "excluded by an expression",
    family: "olmo2",
    options: { r: 3, target_modules: "all-linear", exclude_modules: ".*(0|mlp).*" },
  },
  {
    name: "one layer",
    family: "smollm3",
    options: {
      r: 3,
      target_modules: ["q_proj", "down_proj"],
      layers_to_transform: [1],
      layers_pattern: "layers",
    },
  },
  {
    name: "two layers, no pattern, one module in full",
    family: "smollm3",
    having: { num_hidden_layers: 3 },
    options: { r: 3, target_modules: ["q_proj", "model.layers.1.mlp.up_proj"], layers_to_transform: [0, 2] },
  },
  {
    name: "a layer of GPT-2",
    family: "gpt2",
    options: { r: 3, target_modules: ["c_attn"], layers_to_transform: 1 },
  },
  {
    name: "the head",
    family: "llama",
    having: untied,
    options: { r: 3, target_modules: ["q_proj", "lm_head"] },
  },
  { name: "the head of GPT-NeoX", family: "gpt_neox", options: { r: 3, target_modules: ["lm_head"] } },
  {
    name: "a tied head",
    family: "qwen2",
    having: tied,
    options: { r: 3, target_modules: ["q_proj", "lm_head"] },
    isMergedElsewhere: true,
  },
  {
    name: "embedding and head trained whole",
    family: "llama",
    having: untied,
    options: { r: 3, target_modules: ["v_proj"], modules_to_save: ["embed_tokens", "lm_head"] },
  },
  {
    name: "the head of GPT-NeoX trained whole",
    family: "gpt_neox",
    having: { use_parallel_residual: false },
    options: { r: 3, target_modules: ["dense"], modules_to_save: ["lm_head"] },
  },
];

const found = wanted.flatMap(({ family, having, ...rest }): readonly Case[] => {
  const [base] = float32Fixtures(family, having);
  if (base !== undefined) return [{ ...rest, base }];
  const options = having === undefined ? "" : ` with ${JSON.stringify(having)}`;
  reportMissing(`a float32 model of family ${family}${options} (for "${rest.name}")`);
  return [];
});

const cases: readonly Case[] = [
  ...families.flatMap(({ base, targets }) => [
    {
      name: `${base.name} all-linear`,
      base,
      options: { r: 4, lora_alpha: 8, target_modules: "all-linear" },
    },
    {
      name: `${base.name} rank-stabilized`,
      base,
      options: { r: 6, lora_alpha: 5, use_rslora: true, lora_dropout: 0.3, target_modules: targets },
    },
  ]),
  ...found,
];

const needs = needsPython("peft");

describe.skipIf(cases.length === 0 || !pythonHas("peft", "transformers"))(
  `adapters equal those of PEFT 0.21 (${needs})`,
  () => {
    let root = "";
    const folderOf = (name: string) => join(root, name.replaceAll(/\W+/g, "-"));
    const sourceOf = ({ folder, config }: ModelFixture) => ({
      base: resolve(folder),
      ids: idsBelow(Number(config["vocab_size"])),
    });
    const run = (work: { make?: readonly object[]; read?: readonly object[] }) =>
      askPython("peft-reference.test-data.py", { make: [], read: [], ...work });
    beforeAll(async () => {
      root = mkdtempSync(join(tmpdir(), "peft-"));
      for (const { name } of cases) mkdirSync(folderOf(name));
      run({
        make: cases.map(({ name, base, options, isMergedElsewhere }) => {
          return { ...sourceOf(base), options, out: folderOf(name), merge: isMergedElsewhere !== true };
        }),
      });
      await useBackend({ backend: "wasm" });
    });
    afterAll(() => rmSync(root, { recursive: true }));

    const withModel = async ({ folder }: ModelFixture, check: (model: CheckpointLM) => Promise<void>) => {
      const model = await loadCausalLM(folder);
      await check(model).finally(() => model.dispose());
    };

    it.each(cases)("in logits, cached logits, base and merged weights: $name", ({ name, base }) =>
      withModel(base, async (model) => {
        const plain = logitsOf(model);
        const lora = await loadLora(model, folderOf(name));
        const expected = await tensorOf(join(folderOf(name), "expected.safetensors"), "logits");
        // The effect of the adapter is at least a hundred times the tolerance.
        expect(largestDifference(plain, expected)).toBeGreaterThan(100 * tolerance);
        expect(largestDifference(logitsOf(lora), expected)).toBeLessThan(tolerance);
        expect(largestDifference(readByToken(lora, idsBelow(lora.vocabSize)), expected)).toBeLessThan(
          tolerance,
        );
        expect(logitsOf(lora.base)).toEqual(plain);
        const merged = join(folderOf(name), "ours");
        if (existsSync(join(folderOf(name), "merged.safetensors"))) {
          await lora.saveMerged(merged);
          await expectMerged(merged, join(folderOf(name), "merged.safetensors"));
        } else {
          // A tied head with an adapter becomes a separate head.
          await lora.saveMerged(merged);
          const loaded = await loadCausalLM(merged);
          expect(largestDifference(logitsOf(loaded), expected)).toBeLessThan(tolerance);
          loaded.dispose();
        }
        lora.dispose();
        expect(logitsOf(model)).toEqual(plain);
      }),
    );

    it("byte for byte after loading and saving", async () => {
      for (const { name, base, options } of cases) {
        await withModel(base, async (model) => {
          const lora = await loadLora(model, folderOf(name));
          await lora.save(join(folderOf(name), "again"));
          lora.dispose();
        });
        const [before, after] = ["", "again"].map((folder) =>
          join(folderOf(name), folder, "adapter_model.safetensors"),
        ) as [string, string];
        // PEFT also saves the head itself if it has an adapter.
        const isOnHead = JSON.stringify(options["target_modules"]).includes("lm_head");
        if (isOnHead) await expectSame(after, before, [/base_layer/]);
        else expect(Buffer.compare(readFileSync(before), readFileSync(after)), name).toBe(0);
      }
    });

    it("when PEFT loads new ones, bit for bit", async () => {
      const expected = new Map<string, Float32Array>();
      for (const [i, { base }] of families.entries()) {
        await withModel(base, async (model) => {
          const lora = withLora(model, { rank: 3, rsLora: i % 2 === 0, layersToTransform: [1] });
          for (const [salt, variable] of lora.trainables().entries()) {
            const drawn = tf.randomNormal(variable.shape, 0, 0.2, "float32", salt + 1);
            variable.assign(drawn);
            drawn.dispose();
          }
          expected.set(base.name, logitsOf(lora));
          await lora.save(join(root, "new", base.name));
          lora.dispose();
        });
      }
      run({
        read: families.map(({ base }) => {
          const [adapter, out] = [base.name, `${base.name}-read`].map((name) => join(root, "new", name));
          return { ...sourceOf(base), adapter, out };
        }),
      });
      for (const {
        base: { name },
      } of families) {
        const logits = await tensorOf(join(root, "new", `${name}-read.expected.safetensors`), "logits");
        expect(largestDifference(expected.get(name)!, logits), name).toBeLessThan(tolerance);
        await expectSame(
          join(root, "new", name, "adapter_model.safetensors"),
          join(root, "new", `${name}-read.safetensors`),
        );
      }
    });
  },
);

function logitsOf(model: CheckpointLM): Float32Array {
  const ids = idsBelow(model.vocabSize);
  return tf.tidy(() => model.logits(tf.tensor2d([ids], [1, ids.length], "int32")).dataSync() as Float32Array);
}

async function tensorOf(path: string, name: string): Promise<ArrayLike<number>> {
  const file = await openSafetensors(path);
  try {
    return (await file.read(name)) as Float32Array;
  } finally {
    await file.close();
  }
}

async function expectMerged(folder: string, reference: string): Promise<void> {
  const [ours, theirs] = [await openTensors(folder), await openSafetensors(reference)];
  for (const name of ours.tensors.keys()) {
    const found = [name, `transformer.${name}`, name.replace("embed_out", "lm_head")].find((one) =>
      theirs.tensors.has(one),
    );
    expect(ours.tensors.get(name)!.shape).toEqual(theirs.tensors.get(found!)!.shape);
    const [own, expected] = [await ours.read(name), (await theirs.read(found!)) as Float32Array];
    expect(largestDifference(own, expected), name).toBeLessThan(1e-5);
  }
  await ours.close();
  await theirs.close();
}

async function expectSame(path: string, other: string, besides: readonly RegExp[] = []): Promise<void> {
  const [ours, theirs] = [await openSafetensors(path), await openSafetensors(other)];
  const others = [...theirs.tensors.keys()].filter((name) => !besides.some((each) => each.test(name)));
  expect(others.sort()).toEqual([...ours.tensors.keys()].sort());
  for (const name of ours.tensors.keys())
    expect(await theirs.read(name), name).toEqual(await ours.read(name));
  await ours.close();
  await theirs.close();
}
