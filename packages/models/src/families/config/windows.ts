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

/** Returns the types of layers of which every `period`-th has full attention. */
export const fullEvery =
  (period: number) =>
  (index: number): LayerType =>
    (index + 1) % period === 0 ? "full_attention" : "sliding_attention";

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
