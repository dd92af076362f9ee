import type { DecoderDescription } from "../decoder/description.ts";
import type { ConfigReader } from "./config/config-reader.ts";
import { requireWholeHeads } from "./config/sizes.ts";
import { alike, llamaFamily, type LlamaLike } from "./llama-like.ts";
import { rotary } from "./config/rope.ts";
import { layerTypes, windows } from "./config/windows.ts";
import { attentionBias } from "./config/attention-bias.ts";

const defaults = {
  vocabSize: 256_000,
  contextLength: 8192,
  hiddenSize: 8192,
  layers: 40,
  heads: 64,
  epsilon: 1e-5,
  epsilonKey: "layer_norm_eps",
  mlpSize: 22_528,
  tied: true,
  padding: 0,
};

/** Describes what both generations share: LayerNorm without bias before attention and MLP in parallel, and scaled logits. */
function cohereLike(config: ConfigReader, base: LlamaLike): Omit<DecoderDescription, "layers"> {
  return {
    ...base,
    norm: { kind: "layer", epsilon: base.norm.epsilon, offset: 0, hasBias: false },
    block: { ...base.block, residual: "parallelOneNorm" },
    attention: { ...base.attention, bias: attentionBias(config) },
    head: { ...base.head, scale: config.positiveNumber("logit_scale", 0.0625) },
  };
}

/** Command R and Aya. Defaults from transformers 5.24 `CohereConfig`. */
export const cohere = llamaFamily({
  modelType: "cohere",
  defaults,

  describe(config, base, sizes) {
    config.only("use_qk_norm", false);
    const options = { ...sizes, theta: { fallback: 500_000 }, pairs: "adjacent" } as const;
    return { ...cohereLike(config, base), layers: alike(sizes, rotary(config, options)) };
  },
});

/**
 * Command R7B and Command A: windows in three of four layers, and rotation only there. Defaults from transformers 5.24
 * `Cohere2Config`.
 */
export const cohere2 = llamaFamily({
  modelType: "cohere2",
  defaults,

  describe(config, base, sizes) {
    requireWholeHeads(config, sizes);
    const period = config.positiveInteger("sliding_window_pattern", 4);
    const types = layerTypes(config, sizes.layers, (index) =>
      (index + 1) % period !== 0 ? "sliding_attention" : "full_attention",
    );
    const window = config.positiveIntegerOrNull("sliding_window", 4096);
    const rotation = rotary(config, { ...sizes, theta: { fallback: 10_000 }, pairs: "adjacent" });
    return {
      ...cohereLike(config, base),
      layers: alike(sizes, rotation, windows(config, types, window)).map((layer) => {
        return { ...layer, rotary: layer.window === null ? null : rotation };
      }),
    };
  },
});
