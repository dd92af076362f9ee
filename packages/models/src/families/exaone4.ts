import { fullEvery, layerTypes, windows } from "./config/model-options.ts";
import { llamaFamily, withWindows } from "./llama-like.ts";

/**
 * EXAONE 4: norms after attention and MLP, norms of the queries and keys of each head, and layers with full attention that do not
 * rotate if others have a window. Defaults from transformers 5.24 `Exaone4Config`.
 */
export const exaone4 = llamaFamily({
  modelType: "exaone4",
  defaults: {
    vocabSize: 102_400,
    contextLength: 2048,
    hiddenSize: 4096,
    layers: 32,
    heads: 32,
    keyValueHeads: 32,
    epsilon: 1e-5,
    mlpSize: 16_384,
  },
  norms: { before: false, after: true },
  queryKeyNorm: "head",

  describe(config, base, sizes) {
    const window = config.positiveIntegerOrNull("sliding_window", 4096);
    // Published configurations write "LLLG" beside layer_types, which decide.
    const isDerived = config.get("layer_types") === null && window !== null;
    const period = isDerived ? config.positiveInteger("sliding_window_pattern", 4) : 1;
    config.get("sliding_window_pattern");
    const types = layerTypes(config, sizes.layers, fullEvery(period));
    const layers = withWindows(base.layers, windows(config, types, window));
    const rotates = (layerWindow: number | null) => window === null || layerWindow !== null;
    return {
      ...base,
      layers: layers.map((layer) => (rotates(layer.window) ? layer : { ...layer, rotary: null })),
    };
  },
});
