import { rotationsByType } from "./config/rope.ts";
import { layerTypes, windows } from "./config/windows.ts";
import { alike, llamaFamily } from "./llama-like.ts";
import { olmo2Defaults, olmo2Like, olmo2Names } from "./olmo2.ts";

/**
 * OLMo 3: OLMo 2 with windows in three of four layers, and a rotation of its own for these. Defaults from transformers 5.24
 * `Olmo3Config`.
 */
export const olmo3 = llamaFamily({
  modelType: "olmo3",
  defaults: olmo2Defaults,
  names: olmo2Names,

  describe(config, base, sizes) {
    // In the layout of transformers 4, `rope_theta` applies to full attention only, as in transformers 5.24.
    const rotations = rotationsByType(config, sizes, {
      full_attention: { fallback: 500_000 },
      sliding_attention: { key: null, fallback: 500_000 },
    });
    const types = layerTypes(config, sizes.layers, (index) =>
      (index + 1) % 4 !== 0 ? "sliding_attention" : "full_attention",
    );
    const layerWindows = windows(config, types, config.positiveIntegerOrNull("sliding_window", 4096));
    return {
      ...olmo2Like(config, base),
      layers: alike(sizes, null, layerWindows).map((layer, index) => {
        return { ...layer, rotary: rotations[types[index]!] };
      }),
    };
  },
});
