import { alike, llamaFamily } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";

type Describe = Parameters<typeof llamaFamily>[0]["describe"];

const defaults = {
  vocabSize: 151_552,
  contextLength: 131_072,
  hiddenSize: 4096,
  layers: 40,
  heads: 32,
  keyValueHeads: 2,
  headDim: 128,
  epsilon: 1.5625e-7,
  mlpSize: 13_696,
  padding: 151_329,
};

const describeGlm: Describe = (config, base, sizes) => {
  const bias = config.boolean("attention_bias", true);
  const partial = { key: "partial_rotary_factor", fallback: 0.5 };
  const options = { ...sizes, theta: { fallback: 10_000 }, partial, pairs: "adjacent" } as const;
  return {
    ...base,
    attention: { ...base.attention, bias: { queryKeyValue: bias, output: false } },
    mlp: { ...base.mlp, kind: "gatedFused" },
    layers: alike(sizes, rotary(config, options)),
  };
};

const fusedGate = (at: string) => ({ up: [`${at}.mlp.gate_up_proj`] });

/**
 * GLM-4-9B: Llama with biases on queries, keys and values, a fused gate, and rotation of adjacent dimensions in a part of each
 * head. Defaults from transformers 5.24 `GlmConfig`.
 */
export const glm = llamaFamily({
  modelType: "glm",
  defaults,
  names: fusedGate,
  describe: describeGlm,
});

/** GLM-4-0414 and GLM-Z1: GLM with further norms after attention and MLP. Defaults from transformers 5.24 `Glm4Config`. */
export const glm4 = llamaFamily({
  modelType: "glm4",
  defaults,
  names: (at) => ({
    ...fusedGate(at),
    attentionOutputNorm: `${at}.post_self_attn_layernorm`,
    mlpOutputNorm: `${at}.post_mlp_layernorm`,
  }),

  describe(config, base, sizes) {
    const described = describeGlm(config, base, sizes);
    return { ...described, block: { ...described.block, norms: { before: true, after: true } } };
  },
});
