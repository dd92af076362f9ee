import type { ConfigReader } from "./config-reader.ts";

export type LayerType = "full_attention" | "sliding_attention";

/**
 * Reads `layer_types`; if it is absent, `derived` gives the type of each layer by its index from 0. "attention" is an older name
 * of "full_attention".
 */
export function layerTypes(
  config: ConfigReader,
  layers: number,
  derived: (index: number) => LayerType,
): readonly LayerType[] {
  const isLayerType = (entry: unknown): entry is LayerType | "attention" =>
    entry === "full_attention" || entry === "sliding_attention" || entry === "attention";
  const types = config.list("layer_types", layers, isLayerType, '"full_attention" or "sliding_attention"');
  return Array.from({ length: layers }, (_, index) => {
    const type = types === null ? derived(index) : types[index]!;
    return type === "attention" ? "full_attention" : type;
  });
}

/** Returns the attention window of each layer, in tokens; null for layers with full attention. */
export function windows(
  config: ConfigReader,
  types: readonly LayerType[],
  window: number | null,
): readonly (number | null)[] {
  if (window === null && types.includes("sliding_attention"))
    throw config.valueError(
      "sliding_window",
      "a number of tokens, because some layers use sliding attention",
    );
  return types.map((type) => (type === "sliding_attention" ? window : null));
}

/** Returns the windows of Qwen 2 and 3: with `use_sliding_window`, layers from `max_window_layers` on slide. */
export function qwenWindows(
  config: ConfigReader,
  layers: number,
  firstByDefault = 28,
): readonly (number | null)[] {
  const slides = config.boolean("use_sliding_window", false);
  const size = config.positiveIntegerOrNull("sliding_window", 4096);
  const first = config.nonNegativeInteger("max_window_layers", firstByDefault);
  const window = slides ? size : null;
  const types = layerTypes(config, layers, (index) =>
    window !== null && index >= first ? "sliding_attention" : "full_attention",
  );
  return windows(config, types, window);
}
