import { describe, expect, it } from "vitest";
import { ConfigReader, type HuggingFaceConfig } from "./config/config-reader.ts";
import { tinyConfig } from "../testing/tiny-config.test-data.ts";
import { llama } from "./llama.ts";

const { rope_theta: _, ...withoutTheta } = tinyConfig;
const frequenciesOf = (config: object, where = "x") =>
  llama.describe(new ConfigReader(config as HuggingFaceConfig, where)).layers[0]!.rotary!.frequencies;
const llama3 = {
  rope_type: "llama3",
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 64,
};

describe("the Llama family", () => {
  it("describes a configuration", () => {
    const layer = {
      window: null,
      // 100^(−2i/6)
      rotary: { pairs: "halves", frequencies: [1, 100 ** (-2 / 6), 100 ** (-4 / 6)], long: null, factor: 1 },
      scoreScale: 6 ** -0.5,
    };
    expect(
      llama.describe(
        new ConfigReader(
          { ...tinyConfig, attention_bias: true, head_dim: 6, tie_word_embeddings: true },
          "config.json",
        ),
      ),
    ).toEqual({
      vocabSize: 32,
      contextLength: 16,
      hiddenSize: 8,
      embedding: { scale: 1, paddingRow: null, learnedPositions: null },
      norm: { kind: "rms", epsilon: 1e-5, offset: 0 },
      block: { norms: { before: true, after: false }, residual: "sequential", residualScale: 1 },
      attention: {
        heads: 4,
        keyValueHeads: 2,
        headDim: 6,
        projection: "separate",
        bias: { queryKeyValue: true, output: true },
        queryKeyNorm: null,
        softCap: null,
      },
      mlp: { kind: "gated", activation: "silu", size: 12, bias: false },
      layers: [layer, layer],
      head: { tied: true, bias: false, scale: 1, softCap: null },
    });
  });

  it("reads rotary options in the layouts of transformers 4 and 5", () => {
    const old = frequenciesOf({ ...tinyConfig, rope_scaling: llama3 }, "old");
    const current = { ...withoutTheta, rope_parameters: { ...llama3, rope_theta: 100 } };
    expect(frequenciesOf(current, "new")).toEqual(old);
    const linear = { ...tinyConfig, rope_scaling: { type: "linear", factor: 4 } };
    expect(frequenciesOf(linear, "linear")).toEqual([1 / 4]);
    expect(frequenciesOf(withoutTheta, "default")).toEqual([1]);
  });

  it("stretches only long wavelengths with the scaling of Llama 3", () => {
    // head_dim 8, theta 100: frequencies 1, .316, .1, .0316; wavelengths 6.3, 19.9, 62.8, 198.7 tokens. With a context of
    // 64, a wavelength below 64/4 = 16 stays, one above 64/1 is divided by 8, and one between is blended:
    // smooth = (64/19.87 − 1)/3 = 0.7403,
    // 0.31623·(0.2597/8 + 0.7403) = 0.24438; and (64/62.83 − 1)/3 = 0.0062, 0.1·(0.9938/8 + 0.0062) = 0.013042.
    const frequencies = frequenciesOf({ ...tinyConfig, head_dim: 8, rope_scaling: llama3 });
    const expected = [1, 0.24438, 0.013042, 0.0316228 / 8];
    frequencies.forEach((frequency, i) => expect(frequency).toBeCloseTo(expected[i]!, 4));
  });

  it.each([
    [{ hidden_act: "mish" }, /hidden_act: got "mish", expected "silu" or "swish"/],
    [{ attention_dropout: 0.1 }, /attention_dropout: got 0.1, expected 0 or absent/],
    [{ rope_interleaved: true }, /rope_interleaved: got true/],
    [{ quantization_config: { bits: 4 } }, /quantization_config: got {"bits":4}/],
    [{ sliding_window: 16 }, /sliding_window: got 16, expected only keys that this family supports/],
    [{ num_key_value_heads: 3 }, /num_key_value_heads: got 3, expected a divisor of 4 heads/],
    [
      { num_attention_heads: 3, num_key_value_heads: 3 },
      /num_attention_heads: got 3, expected a divisor of hidden_size, 8/,
    ],
    [{ head_dim: 3 }, /head_dim: got 3, expected an even number/],
    [{ hidden_size: "8" }, /hidden_size: got "8", expected a positive integer/],
    [{ rms_norm_eps: NaN }, /rms_norm_eps/],
    [{ attention_bias: 1 }, /attention_bias: got 1, expected true or false/],
    [
      { rope_scaling: { rope_type: "proportional", factor: 4 } },
      /rope_scaling, rope_type: got "proportional", expected "default" or "linear"/,
    ],
    [{ rope_scaling: { rope_type: "linear" } }, /rope_scaling, factor: got nothing/],
    [{ rope_scaling: { ...llama3, attention_factor: 2 } }, /rope_scaling, attention_factor: got 2/],
    [
      { rope_scaling: { ...llama3, high_freq_factor: 1 } },
      /high_freq_factor: got 1, expected a number above low_freq_factor, 1/,
    ],
    [{ rope_parameters: { rope_theta: 7 } }, /rope_theta: got 100, expected 7/],
    [{ rope_scaling: "yes" }, /rope_scaling: got "yes", expected an object/],
  ])("rejects %j by name", (change, message) => {
    const describing = () =>
      llama.describe(new ConfigReader({ ...tinyConfig, ...change }, "folder/config.json"));
    expect(describing).toThrow(message);
    expect(describing).toThrow(/folder\/config\.json/);
  });

  it("accepts keys of published checkpoints that change nothing", () => {
    const bookkeeping = {
      _name_or_path: "x",
      bos_token_id: 1,
      use_cache: true,
      pretraining_tp: 1,
      rope_scaling: null,
    };
    expect(() => llama.describe(new ConfigReader({ ...tinyConfig, ...bookkeeping }, "x"))).not.toThrow();
  });
});
