import type { LayerNames, WeightNames } from "../../decoder/weights.ts";

/** Returns the weight names of Llama, which most families use; `changed` replaces names of a layer by its prefix. */
export function llamaNames(changed: (layer: string) => Partial<LayerNames> = () => ({})): WeightNames {
  return {
    embedding: "model.embed_tokens.weight",
    finalNorm: "model.norm",
    head: "lm_head",
    matrices: "outIn",
    layer(index) {
      const at = `model.layers.${index}`;
      return {
        attentionNorm: `${at}.input_layernorm`,
        queryKeyValue: ["q", "k", "v"].map((part) => `${at}.self_attn.${part}_proj`),
        output: `${at}.self_attn.o_proj`,
        mlpNorm: `${at}.post_attention_layernorm`,
        up: ["gate", "up"].map((part) => `${at}.mlp.${part}_proj`),
        down: `${at}.mlp.down_proj`,
        ...changed(at),
      };
    },
  };
}

/** Returns names with another prefix and another head. */
export function withPrefix(
  names: WeightNames,
  prefix: string,
  other: { readonly prefix: string; readonly head: string },
): WeightNames {
  const changed = (name: string) =>
    name.startsWith(prefix) ? `${other.prefix}${name.slice(prefix.length)}` : name;
  return {
    ...names,
    head: other.head,
    embedding: changed(names.embedding),
    ...(names.positions !== undefined && { positions: changed(names.positions) }),
    finalNorm: changed(names.finalNorm),
    layer: (index) => {
      const entries = Object.entries(names.layer(index)).map(([key, name]: [string, string | string[]]) => [
        key,
        typeof name === "string" ? changed(name) : name.map(changed),
      ]);
      return Object.fromEntries(entries) as LayerNames;
    },
  };
}
