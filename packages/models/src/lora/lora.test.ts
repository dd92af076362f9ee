import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { readSafetensorsHeader } from "@periodic-eval/safetensors";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { createCausalLM } from "../checkpoint/create-causal-lm.ts";
import { loadCausalLM } from "../checkpoint/load-causal-lm.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { drop } from "../testing/drop.test-data.ts";
import { meanLoss, twoRows } from "../testing/mean-loss.test-data.ts";
import { readByToken } from "../testing/read-by-token.test-data.ts";
import { tinyConfig, tinyConfigs } from "../testing/tiny-config.test-data.ts";
import { loadLora } from "./load-lora.ts";
import type { LoraLM } from "./lora-model.ts";
import { withLora } from "./with-lora.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const { ids, labels } = twoRows;
const logitsOf = (model: CheckpointLM) =>
  tf.tidy(() => [...model.logits(tf.tensor2d(ids, [2, 6], "int32")).dataSync()]);
const valuesOf = (model: CheckpointLM) => model.weights().map(({ variable }) => [...variable.dataSync()]);

/** Randomizes A and B, because the B of a new adapter is 0. */
function disturb(lora: LoraLM, deviation = 0.3): void {
  for (const [salt, variable] of lora.trainables().entries()) {
    // TensorFlow.js treats the seed 0 as no seed.
    const drawn = tf.randomNormal(variable.shape, 0, deviation, "float32", salt + 1);
    variable.assign(drawn);
    drawn.dispose();
  }
}

/** Takes one step of plain gradient descent. */
function train(model: CheckpointLM): void {
  const { value, grads } = tf.variableGrads(() => meanLoss(model, ids, labels), [...model.trainables()]);
  for (const variable of model.trainables()) {
    const next = tf.tidy(() => tf.sub(variable, tf.mul(grads[variable.name]!, 0.5)));
    variable.assign(next);
    next.dispose();
  }
  tf.dispose([value, grads]);
}

const root = temporaryFolder(afterAll);

describe.each(["cpu", "wasm"])("LoRA on %s", (backend) => {
  beforeAll(async () => void (await useBackend({ backend })));

  it.each(Object.entries(tinyConfigs))(
    "derives the adapter's gradients on %s from those of the merged weights: dA = scale·dW·Bᵀ, dB = scale·Aᵀ·dW",
    async (family, config) => {
      // Both models drop the same values, because `meanLoss` seeds every stream equally.
      const dropout = 0.25;
      const model = createCausalLM(config, { seed: "a", initStd: 0.3, dropout });
      const before = tf.memory().numTensors;
      const lora = withLora(model, { rank: 2, alpha: 3 });
      disturb(lora);
      const folder = join(root, `${backend}-${family}`);
      await lora.saveMerged(folder);
      const merged = await loadCausalLM(folder, { dropout });
      const own = tf.variableGrads(() => meanLoss(lora, ids, labels), [...lora.trainables()]);
      const whole = tf.variableGrads(() => meanLoss(merged, ids, labels), [...merged.trainables()]);
      expect(own.value.dataSync()[0]).toBeCloseTo(whole.value.dataSync()[0]!, 5);
      const byName = new Map(merged.weights().map((weight) => [weight.name, weight]));
      const adapters = lora.weights().slice(model.weights().length);
      expect(adapters.length).toBe(lora.trainables().length);
      for (let i = 0; i < adapters.length; i += 2) {
        const [a, b] = [adapters[i]!, adapters[i + 1]!];
        const name = a.name.replace("base_model.model.", "").replace("lora_A.", "");
        expect(b.name).toBe(a.name.replace("lora_A", "lora_B"));
        const { variable } = byName.get(name)!;
        tf.tidy(() => {
          const ofWeight = tf.mul<tf.Tensor2D>(whole.grads[variable.name]!, 1.5);
          const [ofA, ofB] = [
            tf.matMul(ofWeight, b.variable, false, true),
            tf.matMul(a.variable, ofWeight, true, false),
          ];
          for (const [weight, expected] of [
            [a, ofA],
            [b, ofB],
          ] as const) {
            const far = tf.max(tf.abs(tf.sub(own.grads[weight.variable.name]!, expected))).dataSync()[0]!;
            // Gradients of up to 3; the merged weights are rounded.
            expect(far, weight.name).toBeLessThan(2e-5);
          }
        });
      }
      tf.dispose([own.value, own.grads, whole.value, whole.grads]);
      merged.dispose();
      lora.dispose();
      expect(tf.memory().numTensors).toBe(before);
      model.dispose();
    },
  );

  it.each(Object.entries(tinyConfigs))(
    "gives the logits of %s token by token that it gives for the whole sequence",
    (_, config) => {
      const model = createCausalLM(config, { seed: "a", initStd: 0.3 });
      const lora = withLora(model, {
        rank: 2,
        targetModules: ".*(_proj|c_attn|c_fc|query_key_value|dense\\w*)|lm_head",
      });
      disturb(lora, 0.1);
      const sequence = [3, 1, 4, 1, 5, 9, 2, 6];
      const before = tf.memory().numTensors;
      const whole = tf.tidy(() => lora.logits(tf.tensor2d([sequence], [1, 8], "int32")).dataSync());
      const read = readByToken(lora, sequence);
      expect(read.length).toBe(whole.length);
      read.forEach((value, i) => expect(Math.abs(value - whole[i]!)).toBeLessThan(5e-5));
      expect(tf.memory().numTensors).toBe(before);
      lora.dispose();
      model.dispose();
    },
  );

  it("trains only the adapter, leaves the base unchanged bit for bit, and shares its variables", () => {
    const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
    const [plain, weights, tensors] = [logitsOf(model), valuesOf(model), tf.memory().numTensors];
    const lora = withLora(model, { targetModules: ["q_proj", "v_proj"], rank: 2 });
    // Two layers with two maps each, A and B, and no copy of a weight.
    expect(tf.memory().numTensors).toBe(tensors + 8);
    expect(lora.weights().slice(0, model.weights().length)).toEqual(model.weights());
    expect(logitsOf(lora)).toEqual(plain);
    train(lora);
    train(lora);
    expect(tf.memory().numTensors).toBe(tensors + 8);
    expect(logitsOf(lora)).not.toEqual(plain);
    expect(logitsOf(lora.base)).toEqual(plain);
    expect(valuesOf(model)).toEqual(weights);
    // Training the model itself changes the adapted model too.
    const adapted = logitsOf(lora);
    train(model);
    expect(logitsOf(lora)).not.toEqual(adapted);
    lora.dispose();
    expect(tf.memory().numTensors).toBe(tensors);
    model.dispose();
  });

  it("drops inputs of the adapter with streams named after its modules, in training only", () => {
    const model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3, dropout: 0.5 });
    const lora = withLora(model, {
      dropout: 0.5,
      targetModules: ["q_proj", "lm_head"],
      layersToTransform: [1],
    });
    disturb(lora);
    const run = (seed: string) => drop(lora, ids, seed).logits;
    const { logits, names } = drop(lora, ids, "a");
    expect(run("a")).toEqual(logits);
    expect(run("b")).not.toEqual(logits);
    // The head is in no layer; PEFT selects modules by full name in spite of layers_to_transform.
    expect([...names].sort()).toEqual(
      [
        "embedding",
        "layer.0.attention",
        "layer.0.mlp",
        "layer.1.attention",
        "layer.1.mlp",
        "lm_head.lora_dropout",
        "model.layers.1.self_attn.q_proj.lora_dropout",
      ].sort(),
    );
    expect(lora.modes()).toBe("decoder: training, dropout 0.5, adapter dropout 0.5");
    const leave = lora.enterEval();
    expect(run("a")).toEqual(run("b"));
    leave();
    expect(run("a")).not.toEqual(run("b"));
    lora.dispose();
    model.dispose();
  });
});

describe("withLora", () => {
  let model: CheckpointLM;
  beforeEach(async () => {
    await useBackend({ backend: "cpu" });
    model = createCausalLM(tinyConfig, { seed: "a", initStd: 0.3 });
  });
  afterEach(() => model.dispose());

  it("draws A uniformly in ±1/√inputs from its seed and sets B to 0", () => {
    const wide = createCausalLM({ ...tinyConfig, intermediate_size: 4096 }, { seed: "a" });
    const draw = (seed?: string) => {
      const lora = withLora(wide, { targetModules: ["down_proj"], ...(seed !== undefined && { seed }) });
      const values = lora.trainables().map((variable) => variable.dataSync() as Float32Array);
      lora.dispose();
      return values;
    };
    const [a, b] = draw("a") as [Float32Array, Float32Array];
    expect(a.length).toBe(8 * 4096);
    expect(new Set(b)).toEqual(new Set([0]));
    const bound = 1 / Math.sqrt(4096);
    expect(Math.max(...a.map(Math.abs))).toBeLessThanOrEqual(bound);
    expect(Math.max(...a.map(Math.abs))).toBeGreaterThan(0.999 * bound);
    // The mean square of a uniform draw is bound² / 3; its standard deviation over 32,768 draws is 0.5 % of that.
    const meanSquare = a.reduce((sum, value) => sum + value * value, 0) / a.length;
    expect(Math.abs(meanSquare / (bound ** 2 / 3) - 1)).toBeLessThan(0.03);
    expect(draw("a")).toEqual(draw("a"));
    expect(draw("a")[0]).not.toEqual(draw("b")[0]);
    expect(draw()).toEqual(draw("0"));
    wide.dispose();
  });

  it("names trainables after PEFT's tensors in the order of the model, with a suffix for a second adapter", () => {
    const first = withLora(model, { targetModules: ["v_proj", "q_proj", "lm_head"], layersToTransform: [1] });
    const second = withLora(model, { targetModules: ["q_proj"] });
    expect(first.trainables().map(({ name }) => name)).toEqual([
      "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight",
      "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight",
      "base_model.model.model.layers.1.self_attn.v_proj.lora_A.weight",
      "base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight",
      "base_model.model.lm_head.lora_A.weight",
      "base_model.model.lm_head.lora_B.weight",
    ]);
    expect(second.trainables()[2]!.name).toBe(
      "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight#2",
    );
    disturb(first);
    expect(logitsOf(second)).toEqual(logitsOf(model));
    first.dispose();
    expect(logitsOf(second)).toEqual(logitsOf(model));
    second.dispose();
  });

  it("saves two files that load to the same bits", async () => {
    const options = {
      rank: 2,
      rsLora: true,
      rankPattern: { k_proj: 3 },
      alphaPattern: { "layers.1.mlp.*": 4 },
    };
    const lora = withLora(model, { ...options, dropout: 0.1 });
    disturb(lora);
    const folder = join(root, "saved");
    await lora.save(folder);
    expect((await readdir(folder)).sort()).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
    const again = await loadLora(model, folder);
    expect(logitsOf(again)).toEqual(logitsOf(lora));
    expect(again.modes()).toBe(lora.modes());
    expect(again.adapter).toBe("saved");
    await again.save(join(root, "again"));
    for (const name of await readdir(folder))
      expect(await readFile(join(root, "again", name))).toEqual(await readFile(join(folder, name)));
    const narrow = join(root, "narrow");
    await lora.save(narrow, { dtype: "BF16" });
    const { tensors } = await readSafetensorsHeader(join(narrow, "adapter_model.safetensors"));
    expect(new Set([...tensors.values()].map(({ dtype }) => dtype))).toEqual(new Set(["BF16"]));
    lora.dispose();
    again.dispose();
  });

  it("writes the keys that PEFT requires", async () => {
    await model.save(join(root, "base"));
    const loaded = await loadCausalLM(join(root, "base"));
    const lora = withLora(loaded, { targetModules: "all-linear" });
    expect(lora.adapterConfig).toMatchObject({
      peft_type: "LORA",
      task_type: "CAUSAL_LM",
      base_model_name_or_path: join(root, "base"),
      r: 8,
      lora_alpha: 16,
      target_modules: ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
      fan_in_fan_out: false,
    });
    expect(lora.name).toBe("base");
    expect(lora.adapter).toBe("rank 8, alpha 16");
    lora.dispose();
    loaded.dispose();
  });

  const positive = "expected a positive integer";
  it.each<[object, path: (string | number)[], message: RegExp | string]>([
    [{ rank: 0 }, ["rank"], `got 0, ${positive}`],
    [{ rank: 1.5 }, ["rank"], positive],
    [{ rank: "8" }, ["rank"], positive],
    [{ rank: 2 ** 40 }, ["rank"], /got 1099511627776, expected at most 8 for .*q_proj, a map from 8 /],
    [
      { rankPattern: { down_proj: 13 } },
      ["rankPattern", "down_proj"],
      /got 13, expected at most 12 for .*down_proj/,
    ],
    [{ alpha: NaN }, ["alpha"], "got NaN"],
    [{ alpha: -1 }, ["alpha"], "got -1"],
    [{ dropout: 1 }, ["dropout"], "got 1, expected a probability in [0, 1)"],
    [{ seed: 1 }, ["seed"], "got 1, expected a string"],
    [{ rang: 8 }, ["rang"], /unknown option "rang".*Did you mean "rank"\?/],
    [{ targetModules: [] }, ["targetModules"], "got []"],
    [{ targetModules: 7 }, ["targetModules"], "got 7"],
    [{ targetModules: ["q_proj", "v_prj"] }, ["targetModules", 1], /got "v_prj".*Write "v_proj"\./],
    [{ targetModules: "q_proj" }, ["targetModules"], "got no module of this model"],
    [{ targetModules: "(" }, ["targetModules"], /got Invalid regular expression/],
    [{ targetModules: ".*" }, ["targetModules"], "got model.embed_tokens, expected linear maps: q_proj, "],
    [{ layersToTransform: [2] }, ["layersToTransform", 0], "got 2, expected layers from 0 to 1"],
    [{ layersToTransform: [] }, ["layersToTransform"], "got []"],
    [
      { layersToTransform: [0], targetModules: ".*q_proj" },
      ["layersToTransform"],
      "expected target_modules as an array of names",
    ],
    [{ rankPattern: { q_proj: 0 } }, ["rankPattern", "q_proj"], `got 0, ${positive}`],
    [
      { rankPattern: { q_prj: 4 } },
      ["rankPattern", "q_prj"],
      'got the name "q_prj", which matches no target, expected the end of a target\'s name',
    ],
    [{ rankPattern: { v_proj: 4, ".*q_prj": 4 } }, ["rankPattern", ".*q_prj"], 'got the name ".*q_prj"'],
    [{ alphaPattern: { q_proj: "4" } }, ["alphaPattern", "q_proj"], 'got "4", expected a number above 0'],
    [{ rankPattern: null }, ["rankPattern"], "got null, expected an object of positive integers"],
    [{ rankPattern: 4 }, ["rankPattern"], "got 4"],
    [{ alphaPattern: [] }, ["alphaPattern"], "got [], expected an object of numbers above 0"],
    [
      { alphaPattern: { k_proj: 4 }, targetModules: ["q_proj", "v_proj"] },
      ["alphaPattern", "k_proj"],
      /got the name "k_proj", .* expected .* expression for it: q_proj, v_proj\./,
    ],
  ])("rejects %j with the path of the option", (options, path, message) => {
    const before = tf.memory().numTensors;
    const error = ((): unknown => {
      try {
        return withLora(model, options);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(PeriodicEvalError.is(error, "config")).toBe(true);
    expect(error).toMatchObject({ path, where: expect.stringMatching(/^withLora options\./) as string });
    if (typeof message === "string") expect((error as Error).message).toContain(message);
    else expect((error as Error).message).toMatch(message);
    expect(tf.memory().numTensors).toBe(before);
  });

  it("rejects a model that already has an adapter, and models of other packages", () => {
    const lora = withLora(model);
    expect(() => withLora(lora)).toThrow("got a model that already has an adapter");
    expect(() => withLora({ ...model })).toThrow("expected a model of loadCausalLM or createCausalLM");
    lora.dispose();
  });

  it("throws when it is used after it or its base was disposed", () => {
    const base = createCausalLM(tinyConfig, { seed: "a" });
    const [one, two] = [withLora(base), withLora(base)];
    one.dispose();
    expect(() => logitsOf(one)).toThrow("got a disposed model");
    expect(logitsOf(two).length).toBeGreaterThan(0);
    base.dispose();
    expect(() => logitsOf(two)).toThrow("got a disposed model");
    two.dispose();
  });

  it("separates a tied head with an adapter in the merged model", async () => {
    const tied = createCausalLM(tinyConfigs.gemma, { seed: "a", initStd: 0.3 });
    const lora = withLora(tied, { targetModules: ["lm_head", "o_proj"] });
    disturb(lora);
    const folder = join(root, "tied");
    await lora.saveMerged(folder);
    const merged = await loadCausalLM(folder);
    expect(merged.config["tie_word_embeddings"]).toBe(false);
    const [own, expected] = [logitsOf(merged), logitsOf(lora)];
    own.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 4));
    expect(valuesOf(tied)[0]).toEqual([...merged.weights()[0]!.variable.dataSync()]);
    for (const each of [merged, lora, tied]) each.dispose();
  });
});
