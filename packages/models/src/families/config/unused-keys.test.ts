import { expect, it } from "vitest";
import { tinyConfig, tinyConfigs } from "../../testing/tiny-config.test-data.ts";
import { familyOf } from "../registry.ts";
import { ConfigReader, type HuggingFaceConfig } from "./config-reader.ts";

function notesOf(config: HuggingFaceConfig): readonly string[] {
  const notes: string[] = [];
  familyOf(config, "config.json").describe(new ConfigReader(config, "config.json", { notes }));
  return notes;
}

const notUsed = "not used; transformers does not read this from a model of this family either.";

it.each([
  { unsloth_fixed: true, unsloth_version: "2025.3", unsloth_training: {} },
  { _name_or_path: "x", _attn_implementation_autoset: true, name_or_path: "x" },
  { layer_types: ["full_attention", "full_attention"], sliding_window: null },
  { layer_types: ["attention", "full_attention"] },
  { mlp_bias: false, use_sliding_window: false, use_bidirectional_attention: false, is_causal: true },
  { quantization_config: null, rope_scaling: null, model_max_length: 4096 },
  { image_token_id: 3, boi_token_id: 4 },
])("accepts %j silently, because these keys change nothing", (keys) => {
  expect(notesOf({ ...tinyConfig, ...keys })).toEqual([]);
});

it("notes in one sentence the keys that the class of the family in transformers does not read", () => {
  // Of MLX, axolotl, llama.cpp and vLLM; an option of another family; names of every object in JavaScript.
  const keys = {
    quantization: { group_size: 64, bits: 4 },
    axolotl_version: "0.9",
    gguf_type: 1,
    max_num_seqs: 16,
    attn_logit_softcapping: 50,
    constructor: {},
    toString: 1,
  };
  expect(notesOf({ ...tinyConfig, ...keys })).toEqual([
    `config.json, ${Object.keys(keys).join(", ")}: ${notUsed}`,
  ]);
});

it("notes rates of dropout, which only training could use", () => {
  expect(notesOf({ ...tinyConfigs.phi, resid_pdrop: 0.1, attention_dropout: 0 })).toEqual([
    "config.json, resid_pdrop: not used; the option `dropout` sets the rate of dropout in training.",
  ]);
});

it("notes keys beside a text part that say nothing about it, where the text part has its own", () => {
  const outer = { vision_config: { hidden_size: 4 }, mm_tokens_per_image: 4, hidden_size: 7, rope_theta: 7 };
  expect(notesOf({ ...tinyConfigs.gemma3, ...outer })).toEqual([
    "config.json, hidden_size, rope_theta: not used for text.",
  ]);
  const text_config = { ...tinyConfigs.gemma3.text_config, gguf_type: 1 };
  expect(notesOf({ ...tinyConfigs.gemma3, text_config })).toEqual([
    `config.json, text_config, gguf_type: ${notUsed}`,
  ]);
});

it.each<[HuggingFaceConfig, RegExp]>([
  [{ sliding_window: 16 }, /sliding_window: got 16/],
  [{ layer_types: ["full_attention", "sliding_attention"] }, /layer_types: got .*only "full_attention"/],
  [{ layer_types: ["full_attention"] }, /layer_types: got .*an array of 2 entries/],
  [{ attention_chunk_size: 8 }, /attention_chunk_size: got 8/],
  [{ is_causal: false }, /is_causal: got false/],
  [{ use_bidirectional_attention: true }, /use_bidirectional_attention: got true/],
  [{ quantization_config: { quant_method: "bitsandbytes" } }, /quantization_config: got/],
  [{ per_layer_config: {} }, /per_layer_config: got {}/],
  [{ partial_rotary_factor: 0.5 }, /partial_rotary_factor: got 0.5/],
  [{ original_max_position_embeddings: 8 }, /original_max_position_embeddings: got 8/],
  [{ rope_interleaved: true }, /rope_interleaved: got true/],
  [{ transformers_weights: "other.safetensors" }, /transformers_weights: got/],
])("refuses %j, which transformers reads from the configuration of any class", (keys, message) => {
  expect(() => notesOf({ ...tinyConfig, ...keys })).toThrow(message);
});

it("refuses unknown keys and rates of dropout where nobody receives notes, as for a created model", () => {
  const describing = (keys: HuggingFaceConfig) => () =>
    familyOf(tinyConfig, "x").describe(new ConfigReader({ ...tinyConfig, ...keys }, "x"));
  expect(describing({ hiden_size: 4 })).toThrow(/hiden_size: got 4, expected only keys that this family/);
  expect(describing({ attention_dropout: 0.1 })).toThrow(/attention_dropout: got 0.1, expected 0 or absent/);
  expect(describing({ unsloth_fixed: true, use_mrope: false })).not.toThrow();
});
