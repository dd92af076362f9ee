import { PeriodicEvalError } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import type { DecoderDescription } from "../decoder/description.ts";
import { tinyConfigs } from "../testing/tiny-config.test-data.ts";
import { ConfigReader, type HuggingFaceConfig } from "./config/config-reader.ts";
import { familyOf, supportedModelTypes } from "./registry.ts";

type ModelType = keyof typeof tinyConfigs;

function described(type: ModelType, change: object = {}): DecoderDescription {
  const config: HuggingFaceConfig = { ...tinyConfigs[type], ...change };
  return familyOf(config, "config.json").describe(new ConfigReader(config, "config.json"));
}

const windowsOf = ({ layers }: DecoderDescription) => layers.map(({ window }) => window);
const rotaryOf = ({ layers }: DecoderDescription, index = 0) => layers[index]!.rotary!;

it("has a tiny test configuration for every family", () => {
  expect(Object.keys(tinyConfigs).sort()).toEqual([...supportedModelTypes].sort());
});

it("throws for an unsupported family and lists the supported ones", () => {
  for (const model_type of ["bert", undefined, "toString"]) {
    const finding = () => familyOf({ model_type }, "config.json");
    expect(finding).toThrow(/model_type: got .*, expected "llama" or .*"smollm3"/);
    expect(finding).toThrow(PeriodicEvalError);
  }
});

/** The defaults from `to_dict()` of each configuration class of transformers 5.23. */
it.each<[ModelType, object]>([
  ["llama", { vocabSize: 32_000, contextLength: 2048, head: { tied: false, softCap: null } }],
  ["mistral", { vocabSize: 32_000, contextLength: 131_072, head: { tied: false, softCap: null } }],
  ["qwen2", { vocabSize: 151_936, contextLength: 32_768, head: { tied: false, softCap: null } }],
  ["qwen3", { vocabSize: 151_936, hiddenSize: 4096, head: { tied: false, softCap: null } }],
  ["gpt2", { vocabSize: 50_257, contextLength: 1024, hiddenSize: 768, head: { tied: true, softCap: null } }],
  ["gpt_neox", { vocabSize: 50_432, hiddenSize: 6144, head: { tied: false, softCap: null } }],
  ["gemma", { vocabSize: 256_000, hiddenSize: 3072, head: { tied: true, softCap: null } }],
  ["gemma2", { vocabSize: 256_000, hiddenSize: 2304, head: { tied: true, softCap: 30 } }],
  ["gemma3_text", { vocabSize: 262_208, contextLength: 131_072, head: { tied: true, softCap: null } }],
  ["phi3", { vocabSize: 32_064, contextLength: 4096, head: { tied: false, softCap: null } }],
  ["olmo2", { vocabSize: 50_304, contextLength: 2048, head: { tied: false, softCap: null } }],
  ["smollm3", { vocabSize: 128_256, contextLength: 32_768, head: { tied: true, softCap: null } }],
  ["ministral", { vocabSize: 32_000, contextLength: 131_072, hiddenSize: 4096 }],
  // The class scales queries from token 16,384 on.
  ["ministral3", { vocabSize: 131_072, contextLength: 16_384, attention: { headDim: 128 } }],
  ["seed_oss", { vocabSize: 155_136, contextLength: 524_288, attention: { heads: 80, headDim: 128 } }],
  ["olmo3", { vocabSize: 50_304, contextLength: 2048, embedding: { paddingRow: 1 } }],
  ["exaone4", { vocabSize: 102_400, contextLength: 2048, mlp: { size: 16_384 } }],
  ["vaultgemma", { vocabSize: 256_000, hiddenSize: 2304, head: { tied: true, softCap: 30 } }],
  ["starcoder2", { vocabSize: 49_152, attention: { keyValueHeads: 2 }, head: { tied: true } }],
  ["stablelm", { vocabSize: 50_304, hiddenSize: 2560, mlp: { size: 6912 } }],
  ["granite", { vocabSize: 32_000, embedding: { scale: 1 }, head: { scale: 1 } }],
  ["arcee", { hiddenSize: 2560, mlp: { size: 18_432, activation: "reluSquared" } }],
  ["phi", { vocabSize: 51_200, hiddenSize: 2048, mlp: { activation: "geluTanh" } }],
  ["opt", { vocabSize: 50_272, contextLength: 2048, embedding: { paddingRow: 1 }, head: { tied: true } }],
  ["nemotron", { vocabSize: 256_000, attention: { heads: 48, headDim: 128 }, mlp: { size: 24_576 } }],
  ["cohere", { vocabSize: 256_000, mlp: { size: 22_528 }, head: { tied: true, scale: 0.0625 } }],
  ["cohere2", { vocabSize: 256_000, contextLength: 8192, head: { tied: true, scale: 0.0625 } }],
  ["glm", { vocabSize: 151_552, attention: { keyValueHeads: 2, headDim: 128 }, mlp: { size: 13_696 } }],
  ["glm4", { vocabSize: 151_552, contextLength: 131_072, norm: { epsilon: 1.5625e-7 } }],
])("gives %s the defaults of its configuration class", (model_type, expected) => {
  const description = familyOf({ model_type }, "x").describe(new ConfigReader({ model_type }, "x"));
  expect(description).toMatchObject(expected);
});

it("takes the size of a head of Nemotron from the hidden size, if the configuration has none", () => {
  const config = { model_type: "nemotron", hidden_size: 64, num_attention_heads: 4 };
  expect(familyOf(config, "x").describe(new ConfigReader(config, "x")).attention.headDim).toBe(16);
});

it("reads the other names of GPT-2's keys, which win over the keys", () => {
  const sizes = { n_layer: 5, num_hidden_layers: 3, hidden_size: 8, num_attention_heads: 2 };
  const config = { model_type: "gpt2", n_positions: 9, max_position_embeddings: 7, ...sizes };
  const description = familyOf(config, "x").describe(new ConfigReader(config, "x"));
  expect(description).toMatchObject({ hiddenSize: 8, contextLength: 7, attention: { heads: 2 } });
  expect(description.layers).toHaveLength(3);
});

describe("the text part of a multimodal model", () => {
  const text_config = tinyConfigs.gemma3.text_config;

  it("is described as the same text model alone", () => {
    const { model_type, ...text } = text_config;
    const alone = familyOf({ model_type }, "x").describe(new ConfigReader({ model_type, ...text }, "x"));
    expect(described("gemma3", { tie_word_embeddings: false })).toEqual(alone);
  });

  it("is tied by the option outside it, except in Qwen2.5-VL, whose text part may have it", () => {
    const tiedOf = (type: ModelType, change: object) => described(type, change).head.tied;
    expect(tiedOf("gemma3", {})).toBe(true);
    expect(tiedOf("gemma3", { tie_word_embeddings: false })).toBe(false);
    expect(
      tiedOf("gemma3", {
        tie_word_embeddings: false,
        text_config: { ...text_config, tie_word_embeddings: true },
      }),
    ).toBe(false);
    const qwen = { ...text_config, model_type: "qwen2_5_vl_text", head_dim: 2, tie_word_embeddings: true };
    const config = { model_type: "qwen2_5_vl", tie_word_embeddings: false, text_config: qwen };
    expect(familyOf(config, "x").describe(new ConfigReader(config, "x")).head.tied).toBe(true);
  });

  it("ignores sections of multimodal rotary positions, which are equal for text", () => {
    const rope_scaling = { type: "mrope", mrope_section: [1, 0, 0] };
    const { rope_scaling: _, ...plain } = tinyConfigs.qwen2_5_vl;
    const [first, second] = [plain, { ...plain, rope_scaling }].map((config) =>
      familyOf(config, "x").describe(new ConfigReader(config, "x")),
    );
    expect(first).toEqual(second);
  });

  it("reads Mistral and Ministral in Mistral 3, and refuses another text part by name", () => {
    const ministral3 = { ...tinyConfigs.ministral3, max_position_embeddings: 300 };
    expect(described("mistral3", { text_config: ministral3 }).contextLength).toBe(128);
    expect(() => described("mistral3", { text_config: { ...text_config, model_type: "llama" } })).toThrow(
      /text_config, model_type: got "llama", expected "mistral" or "ministral" or "ministral3"/,
    );
    expect(() => described("gemma3", { text_config: undefined })).toThrow(
      /text_config: got nothing, expected an object/,
    );
  });

  it("refuses quantized weights", () => {
    expect(() => described("gemma3", { quantization_config: { quant_method: "fp8" } })).toThrow(
      /quantization_config/,
    );
  });
});

describe("the refusal of an unsupported family", () => {
  it.each(["mixtral", "falcon_h1", "llava", "bert"])("names %s, and the way to measure it", (type) => {
    const refusal = () => familyOf({ model_type: type }, "config.json");
    expect(refusal).toThrow(new RegExp(`got "${type}", expected "llama" or`));
    expect(refusal).toThrow(
      /measure the model where it runs: in PyTorch or on a vLLM server, see docs\/guides\/servers\.md/,
    );
  });
});

describe("the window of each layer", () => {
  it("is 4096 by default in Mistral, and unlimited if null", () => {
    expect(windowsOf(described("mistral"))).toEqual([4096, 4096]);
    expect(windowsOf(described("mistral", { sliding_window: 3 }))).toEqual([3, 3]);
    expect(windowsOf(described("mistral", { sliding_window: null }))).toEqual([null, null]);
  });

  it.each<[ModelType]>([["qwen2"], ["qwen3"]])(
    "in %s applies from max_window_layers on, if use_sliding_window is set",
    (type) => {
      const sliding = { sliding_window: 3, max_window_layers: 1 };
      expect(windowsOf(described(type, sliding))).toEqual([null, null]);
      expect(windowsOf(described(type, { ...sliding, use_sliding_window: true }))).toEqual([null, 3]);
      const layer_types = ["sliding_attention", "full_attention"];
      expect(windowsOf(described(type, { ...sliding, use_sliding_window: true, layer_types }))).toEqual([
        3,
        null,
      ]);
      expect(() => described(type, { ...sliding, layer_types })).toThrow(
        /sliding_window: got 3, expected a number/,
      );
    },
  );

  it("alternates in Gemma 2 and follows sliding_window_pattern in Gemma 3, unless layer_types is set", () => {
    expect(windowsOf(described("gemma2", { sliding_window: 3 }))).toEqual([3, null]);
    const three = { num_hidden_layers: 3, sliding_window: 3 };
    expect(windowsOf(described("gemma3_text", three))).toEqual([3, 3, 3]);
    expect(windowsOf(described("gemma3_text", { ...three, sliding_window_pattern: 2 }))).toEqual([
      3,
      null,
      3,
    ]);
    const layer_types = ["full_attention", "full_attention", "sliding_attention"];
    expect(windowsOf(described("gemma3_text", { ...three, layer_types }))).toEqual([null, null, 3]);
  });

  it("follows layer_types in Ministral, and in a Mistral that has them", () => {
    const layer_types = ["attention", "sliding_attention"];
    for (const type of ["mistral", "ministral"] as const)
      expect(windowsOf(described(type, { sliding_window: 3, layer_types }))).toEqual([null, 3]);
    expect(windowsOf(described("ministral", { sliding_window: null }))).toEqual([null, null]);
  });

  it("spares every fourth layer in OLMo 3, Cohere 2 and EXAONE 4, of which the last two do not rotate there", () => {
    const four = { num_hidden_layers: 4, sliding_window: 3 };
    for (const [type, rotates] of [
      ["olmo3", true],
      ["cohere2", false],
      ["exaone4", false],
    ] as const) {
      const description = described(type, four);
      expect(windowsOf(description)).toEqual([3, 3, 3, null]);
      expect(description.layers.map(({ rotary }) => rotary !== null)).toEqual([true, true, true, rotates]);
    }
    // Without windows, the layers of EXAONE 4 rotate.
    const { layers } = described("exaone4", { sliding_window: null });
    expect(layers.map(({ window, rotary }) => [window, rotary !== null])).toEqual([
      [null, true],
      [null, true],
    ]);
  });

  it("applies in SmolLM3 to layers without rotation", () => {
    const sliding = { num_hidden_layers: 4, use_sliding_window: true, sliding_window: 3 };
    const description = described("smollm3", sliding);
    expect(windowsOf(description)).toEqual([null, null, null, 3]);
    expect(description.layers.map(({ rotary }) => rotary !== null)).toEqual([true, true, true, false]);
  });
});

describe("rotation", () => {
  it("differs in Gemma 3 for layers with a window, in both layouts", () => {
    const old = described("gemma3_text", {
      rope_theta: 10_000,
      rope_scaling: { rope_type: "linear", factor: 8 },
      rope_local_base_freq: 100,
      sliding_window_pattern: 2,
    });
    // head_dim 4: base^(−2i/4).
    expect(rotaryOf(old, 0).frequencies).toEqual([1, 100 ** -0.5]);
    expect(rotaryOf(old, 1).frequencies).toEqual([1 / 8, 10_000 ** -0.5 / 8]);
    const rope_parameters = {
      full_attention: { rope_type: "linear", factor: 8, rope_theta: 10_000 },
      sliding_attention: { rope_type: "default", rope_theta: 100 },
    };
    const layer_types = ["sliding_attention", "full_attention"];
    expect(described("gemma3_text", { rope_parameters, layer_types })).toEqual(old);
  });

  it("covers a part of each head in GPT-NeoX and Phi-3", () => {
    // A quarter of 8 dimensions is one pair; half of them is two pairs.
    const wide = { hidden_size: 16, num_attention_heads: 2, num_key_value_heads: undefined };
    expect(rotaryOf(described("gpt_neox", wide)).frequencies).toEqual([1]);
    const half = { ...wide, rotary_pct: 0.5, rotary_emb_base: 100 };
    expect(rotaryOf(described("gpt_neox", half)).frequencies).toEqual([1, 0.1]);
    const repeated = { ...half, rope_theta: 100, partial_rotary_factor: 0.5 };
    expect(described("gpt_neox", repeated)).toEqual(described("gpt_neox", half));
    expect(() => described("gpt_neox", { ...half, rope_theta: 7 })).toThrow(
      /rope_theta: got 7, expected 100/,
    );
    const phi3 = { ...wide, partial_rotary_factor: 0.5 };
    expect(rotaryOf(described("phi3", phi3)).frequencies).toEqual([1, 0.01]);
    expect(() => described("phi3", { ...phi3, partial_rotary_factor: 0.4 })).toThrow(/partial_rotary_factor/);
  });

  it("uses the long divisors beyond the original context and a larger factor in LongRoPE", () => {
    const rope_scaling = { type: "longrope", short_factor: [1, 2], long_factor: [4, 8] };
    const phi3 = { max_position_embeddings: 64, original_max_position_embeddings: 16 };
    const rotary = rotaryOf(described("phi3", { ...phi3, rope_scaling }));
    expect(rotary.frequencies).toEqual([1, 0.01 / 2]);
    expect(rotary.long).toEqual({ beyond: 16, frequencies: [1 / 4, 0.01 / 8] });
    // √(1 + ln(64/16)/ln 16) = √1.5
    expect(rotary.factor).toBeCloseTo(Math.sqrt(1.5), 12);
    expect(rotaryOf(described("phi3", { ...phi3, rope_scaling: { ...rope_scaling, type: "su" } }))).toEqual(
      rotary,
    );
    expect(() => described("phi3", { ...phi3, rope_scaling: { ...rope_scaling, long_factor: [1] } })).toThrow(
      /long_factor: got \[1\], expected an array of 2 entries/,
    );
  });
});

it("takes the padding row from pad_token_id or the default of its class, if the row exists", () => {
  const rowOf = (type: ModelType, change: object) => described(type, change).embedding.paddingRow;
  expect(rowOf("llama", {})).toBe(null);
  expect(rowOf("llama", { pad_token_id: 3 })).toBe(3);
  expect(rowOf("llama", { pad_token_id: -1 })).toBe(31);
  expect(rowOf("gemma", {})).toBe(0);
  expect(rowOf("gemma", { pad_token_id: null })).toBe(null);
  // 32000 of 32 rows.
  expect(rowOf("phi3", {})).toBe(null);
  expect(rowOf("gpt2", { pad_token_id: 3 })).toBe(null);
});

it("scales scores of GPT-2 according to scale_attn_weights", () => {
  const scales = (change: object) => described("gpt2", change).layers.map(({ scoreScale }) => scoreScale);
  expect(scales({})).toEqual([0.5, 0.5]);
  expect(scales({ scale_attn_by_inverse_layer_idx: true })).toEqual([0.5, 0.25]);
  expect(scales({ scale_attn_weights: false })).toEqual([1, 1]);
});

it('reads "gelu" in a Gemma configuration as the tanh approximation', () => {
  for (const hidden_act of ["gelu", "gelu_pytorch_tanh"])
    expect(described("gemma", { hidden_act, hidden_activation: null }).mlp.activation).toBe("geluTanh");
  expect(() => described("gemma", { hidden_activation: "gelu" })).toThrow(/hidden_activation: got "gelu"/);
});

it.each<[ModelType, object, RegExp]>([
  ["mistral", { layer_types: ["full_attention"] }, /layer_types: got/],
  ["qwen2", { use_mrope: true }, /use_mrope: got true, expected false or absent/],
  [
    "qwen3",
    { layer_types: ["full_attention"] },
    /layer_types: got \["full_attention"\], expected an array of 2 entries/,
  ],
  ["gpt2", { add_cross_attention: true }, /add_cross_attention: got true/],
  ["gpt2", { n_head: 3 }, /n_head: got 3, expected a divisor of n_embd, 8/],
  ["llama", { hidden_size: 9 }, /num_attention_heads: got 4, expected a divisor of hidden_size, 9/],
  ["phi3", { hidden_size: 9 }, /num_attention_heads: got 2, expected a divisor of hidden_size, 9/],
  ["gpt_neox", { hidden_dropout: 0.1 }, /hidden_dropout: got 0.1/],
  ["gpt_neox", { num_key_value_heads: 2 }, /num_key_value_heads: got 2/],
  ["gemma", { use_bidirectional_attention: true }, /use_bidirectional_attention: got true/],
  ["gemma2", { sliding_window_size: 7 }, /sliding_window_size: got 7, expected 4096 or absent/],
  ["gemma2", { attn_logit_softcapping: -1 }, /attn_logit_softcapping: got -1, expected a number above 0/],
  ["gemma3_text", { rope_parameters: { rope_type: "default" } }, /rope_parameters, rope_type: got "default"/],
  ["phi3", { resid_pdrop: 0.1 }, /resid_pdrop: got 0.1/],
  ["olmo2", { partial_rotary_factor: 0.5 }, /partial_rotary_factor: got 0.5, expected 1 or absent/],
  ["opt", { do_layer_norm_before: false }, /do_layer_norm_before: got false/],
  ["opt", { word_embed_proj_dim: 4 }, /word_embed_proj_dim: got 4, expected 8 or absent/],
  ["opt", { _remove_final_layer_norm: true }, /_remove_final_layer_norm: got true/],
  ["opt", { num_attention_heads: 3 }, /num_attention_heads: got 3, expected a divisor of hidden_size, 8/],
  ["phi", { qk_layernorm: true }, /qk_layernorm: got true/],
  ["phi", { tie_word_embeddings: true }, /tie_word_embeddings: got true/],
  ["stablelm", { qk_layernorm: true }, /qk_layernorm: got true/],
  ["stablelm", { head_dim: 4 }, /head_dim: got 4, expected 2, hidden_size \/ num_attention_heads/],
  ["cohere", { use_qk_norm: true }, /use_qk_norm: got true/],
  ["cohere2", { head_dim: 4 }, /head_dim: got 4, expected 2/],
  ["exaone4", { sliding_window_pattern: "LLLG" }, /sliding_window_pattern: got "LLLG", expected a positive/],
  ["ministral3", { rope_parameters: { rope_type: "default" } }, /llama_4_scaling_beta: got nothing/],
  ["granite", { logits_scaling: 0 }, /logits_scaling: got 0, expected a number above 0/],
  ["olmo3", { rope_parameters: { rope_type: "default" } }, /rope_parameters, rope_type: got "default"/],
  [
    "smollm3",
    { no_rope_layers: [1, 2] },
    /no_rope_layers: got \[1,2\], expected an array of 2 entries, each 0 or 1/,
  ],
])("rejects in %s the option %j by name", (type, change, message) => {
  expect(() => described(type, change)).toThrow(message);
});
