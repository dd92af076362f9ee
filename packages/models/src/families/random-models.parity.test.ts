import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { openSafetensors } from "@periodic-eval/safetensors";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import { largestDifference } from "../testing/largest-difference.test-data.ts";
import { withLora } from "../lora/with-lora.ts";
import { askPython, needsPython, pythonHas } from "../testing/python.test-data.ts";
import { randomModels } from "../testing/random-models.test-data.ts";
import { tinyConfigs } from "../testing/tiny-config.test-data.ts";
import { ConfigReader, type HuggingFaceConfig } from "./config/config-reader.ts";
import { familyOf } from "./registry.ts";

/** The largest difference of a logit, as for the fixtures. */
const tolerance = 2e-4;

/** Sequences of one token, of a few, and of more than the windows. */
const sequences = [1, 7, 40].map((length) => Array.from({ length }, (_, i) => (7 * i + 3 * length) % 61));

/** The head, and the linear maps of layers of every family. */
const everyLinear = "lm_head|(?!.*(vision|visual)).*\\.\\d+\\..*(_proj|dense|fc\\d|c_fc)";

/** A checkpoint that transformers wrote, loaded again after our saving. */
interface Comparison {
  readonly count: number;
  readonly otherNames: readonly string[];
  readonly otherValues: readonly string[];
  readonly complaints: object;
}

describe.skipIf(!pythonHas("transformers", "torch"))(
  `models with random weights (${needsPython("transformers and torch")})`,
  () => {
    let root = "";
    const folderOf = (name: string) => join(root, name.replaceAll(/\W+/g, "-"));
    beforeAll(async () => {
      root = mkdtempSync(join(tmpdir(), "random-models-"));
      for (const { name, config } of randomModels) {
        mkdirSync(folderOf(name));
        writeFileSync(join(folderOf(name), "config.json"), JSON.stringify(config));
      }
      const family = randomModels.map(({ name, renamed = {} }) => {
        return { folder: folderOf(name), ids: sequences, renamed };
      });
      askPython("transformers-reference.test-data.py", { family });
      await useBackend({ backend: "wasm" });
    }, 600_000);
    afterAll(() => rmSync(root, { recursive: true }));

    it.each(randomModels)(
      "have the logits of transformers for $name, in its configuration and in the one that transformers saves",
      async ({ name }) => {
        vi.spyOn(process, "emitWarning").mockImplementation(() => {});
        const folder = folderOf(name);
        const expected = await openSafetensors(join(folder, "logits.safetensors"));
        for (const source of [folder, join(folder, "saved")]) {
          const model = await loadCausalLM(source);
          for (const ids of sequences) {
            const logits = tf.tidy(() => model.logits(tf.tensor2d([ids], undefined, "int32")).dataSync());
            const reference = await expected.read(String(ids.length));
            expect(largestDifference(logits as Float32Array, reference), source).toBeLessThan(tolerance);
          }
          model.dispose();
        }
        await expected.close();
        vi.restoreAllMocks();
      },
    );

    it("have the same description in both layouts of the configuration", () => {
      for (const { name } of randomModels) {
        const [first, second] = ["config.json", "saved/config.json"].map((file) => {
          const path = join(folderOf(name), file);
          const config = JSON.parse(readFileSync(path, "utf8")) as HuggingFaceConfig;
          return familyOf(config, path).describe(new ConfigReader(config, path, { notes: [] }));
        });
        expect(second, name).toEqual(first);
      }
    });

    it("load in transformers after saving, with all tensors of other parts, bit for bit", async () => {
      vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      const compare = [];
      for (const { name } of randomModels) {
        const [original, saved] = [join(folderOf(name), "saved"), join(folderOf(name), "again")];
        const model = await loadCausalLM(original);
        await model.save(saved);
        model.dispose();
        compare.push({ original, saved });
      }
      const found = JSON.parse(askPython("transformers-reference.test-data.py", { compare })) as Comparison[];
      for (const [i, { name }] of randomModels.entries()) {
        const { count, otherNames, otherValues, complaints } = found[i]!;
        expect(count, name).toBeGreaterThan(10);
        expect({ otherNames, otherValues, complaints }, name).toEqual({
          otherNames: [],
          otherValues: [],
          complaints: {},
        });
      }
      vi.restoreAllMocks();
    });

    it("have the logits of PEFT with an adapter on all linear maps, the head included", async () => {
      vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      const ids = sequences[1]!;
      const read = [];
      const logits = new Map<string, Float32Array>();
      for (const { name } of randomModels) {
        const [base, adapter] = [join(folderOf(name), "saved"), join(folderOf(name), "adapter")];
        const model = await loadCausalLM(base);
        const isTied = model.weights().every((weight) => !weight.name.endsWith("lm_head.weight"));
        const lora = withLora(model, isTied ? { rank: 2 } : { rank: 2, targetModules: everyLinear });
        for (const [seed, variable] of lora.trainables().entries())
          tf.tidy(() => variable.assign(tf.randomNormal(variable.shape, 0, 0.05, "float32", seed)));
        await lora.save(adapter);
        const input = () => tf.tensor2d([ids], undefined, "int32");
        logits.set(
          name,
          tf.tidy(() => lora.logits(input()).dataSync() as Float32Array),
        );
        lora.dispose();
        model.dispose();
        read.push({ base, adapter, ids, out: adapter });
      }
      askPython("peft-reference.test-data.py", { make: [], read });
      for (const { name } of randomModels) {
        const file = await openSafetensors(join(folderOf(name), "adapter.expected.safetensors"));
        const reference = await file.read("logits");
        await file.close();
        expect(largestDifference(logits.get(name)!, reference), name).toBeLessThan(tolerance);
      }
      vi.restoreAllMocks();
    }, 600_000);

    it("read every field that the configuration class in transformers defines", () => {
      const types = Object.keys(tinyConfigs) as (keyof typeof tinyConfigs)[];
      const fields = JSON.parse(
        askPython("transformers-reference.test-data.py", { fields: types }),
      ) as Record<string, readonly string[]>;
      for (const type of types) {
        const config: HuggingFaceConfig = tinyConfigs[type];
        const read = new Set<string>();
        const watched = new Proxy(config, {
          get(target, key) {
            read.add(String(key));
            return Reflect.get(target, key) as unknown;
          },
        });
        familyOf(config, type).describe(new ConfigReader(watched, type));
        // A key without effect is accepted silently; another that no description reads would be noted.
        const notes: string[] = [];
        const left = fields[type]!.filter((field) => !read.has(field) && !(field in config));
        const marked = Object.fromEntries(left.map((field) => [field, "x"]));
        familyOf(config, type).describe(new ConfigReader({ ...config, ...marked }, type, { notes }));
        expect(notes, type).toEqual([]);
      }
    });
  },
);
