import type { DecoderDescription } from "../decoder/description.ts";
import type { LayerNames, WeightNames } from "../decoder/weights.ts";
import type { ConfigReader } from "./config/config-reader.ts";

/** A model family: how to read its configuration, and the names of its weights in a checkpoint. */
export interface Family {
  /** The `model_type` of its configurations. */
  readonly modelType: string;
  /**
   * Describes the decoder that a configuration stands for.
   *
   * @throws PeriodicEvalError `model` for a wrong or unsupported option, with its `path` in `config.json`.
   */
  describe(config: ConfigReader): DecoderDescription;
  /** Its names in transformers, and so in PEFT. */
  readonly names: WeightNames;
  /** Another name of the head, which some checkpoints use. */
  readonly otherHead?: string;
  /** The prefix of every name except the head's; checkpoints of the model without its head omit it. */
  readonly prefix: string;
  /** The prefix and the head in other layouts of checkpoints. Default: none. */
  readonly layouts?: readonly Layout[];
  /** Matches tensors of the other parts of a multimodal model, which are copied when the model is saved. Default: none. */
  readonly otherParts?: RegExp;
  /** Matches tensors in old checkpoints that are not weights, besides those of rotary positions. Default: none. */
  readonly buffers?: RegExp;
}

export interface Layout {
  readonly prefix: string;
  readonly head: string;
}

/** Returns the names of a family's weights in a checkpoint, in the first layout whose embedding is there. */
export function namesIn(
  { names, prefix, layouts = [] }: Family,
  has: (tensor: string) => boolean,
): WeightNames {
  const bare = { prefix: "", head: names.head };
  const all = [names, ...[...layouts, bare].map((layout) => withPrefix(names, prefix, layout))];
  return all.find(({ embedding }) => has(embedding)) ?? names;
}

/** Returns the name in transformers of a module with this name in a checkpoint. */
export function moduleName({ prefix, layouts = [] }: Family, name: string): string {
  if (name.startsWith(prefix)) return name;
  const inLayout = layouts.find((layout) => name.startsWith(layout.prefix));
  return `${prefix}${name.slice(inLayout?.prefix.length ?? 0)}`;
}

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
