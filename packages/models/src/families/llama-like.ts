import type {
  AttentionDescription,
  BlockDescription,
  DecoderDescription,
  LayerDescription,
  MlpDescription,
  NormDescription,
} from "../decoder/description.ts";
import type { LayerNames } from "../decoder/weights.ts";
import type { ConfigReader } from "./config/config-reader.ts";
import { activation, modelSizes, paddingRow } from "./config/model-options.ts";
import type { ActivationName, ModelSizes, SizeDefaults } from "./config/model-options.ts";
import { rotary, type RopeOptions } from "./config/rope.ts";
import { finishConfig, unusedDropout } from "./config/unused-keys.ts";
import { llamaNames, type Family } from "./family.ts";

/** The defaults of a configuration class. */
type LlamaLikeDefaults = SizeDefaults & {
  readonly epsilon: number;
  /** Default: `rms_norm_eps`. */
  readonly epsilonKey?: string;
  readonly mlpSize: number;
  /** Default: false. */
  readonly tied?: boolean;
  /** `pad_token_id`. Default: null. */
  readonly padding?: number | null;
  readonly activation?: {
    readonly key: "hidden_act" | "hidden_activation";
    readonly fallback: ActivationName;
  };
  /** Keys of dropout rates. Default: only `attention_dropout`. */
  readonly dropouts?: readonly string[];
};

/** A descendant of Llama, as its differences from Llama. */
export interface LlamaFamily {
  readonly modelType: string;
  readonly defaults: LlamaLikeDefaults;
  /** Default: RMSNorm. */
  readonly layerNorm?: Pick<Extract<NormDescription, { kind: "layer" }>, "offset" | "hasBias">;
  /** Default: only before attention and MLP. */
  readonly norms?: BlockDescription["norms"];
  readonly queryKeyNorm?: AttentionDescription["queryKeyNorm"];
  /** Default: `gated`. */
  readonly mlp?: MlpDescription["kind"];
  /** The rotation of all layers. Default: a base of 10,000; null: `describe` reads it. */
  readonly rotary?: Partial<RopeOptions> | null;
  /** Its options that add biases, off by default: to all maps of attention, to those of the MLP. Default: none. */
  readonly biases?: readonly ("attention_bias" | "mlp_bias")[];
  /** Returns the names of a layer that differ from Llama's, by the layer's prefix. */
  names?(layer: string): Partial<LayerNames>;
  /** The name of the norm before the head. Default: Llama's. */
  readonly finalNorm?: string;
  /** Completes the description. Reads all other keys that it supports. */
  describe?(config: ConfigReader, base: DecoderDescription, sizes: ModelSizes): DecoderDescription;
}

/** The names of the maps into the MLP. */
const upNames = { gated: ["gate_proj", "up_proj"], gatedFused: ["gate_up_proj"], plain: ["up_proj"] };

export function llamaFamily(family: LlamaFamily): Family {
  const { modelType, finalNorm, norms, queryKeyNorm, mlp = "gated" } = family;
  const names = llamaNames((at) => ({
    up: upNames[mlp].map((name) => `${at}.mlp.${name}`),
    ...(queryKeyNorm && { queryNorm: `${at}.self_attn.q_norm`, keyNorm: `${at}.self_attn.k_norm` }),
    ...(norms?.after === true && {
      attentionOutputNorm: `${at}.post_attention_layernorm`,
      mlpOutputNorm: `${at}.post_feedforward_layernorm`,
    }),
    ...family.names?.(at),
  }));
  return {
    modelType,
    describe(config) {
      const sizes = modelSizes(config, family.defaults);
      const base = llamaLike(config, sizes, family);
      const description = family.describe?.(config, base, sizes) ?? base;
      finishConfig(config, sizes.layers);
      return description;
    },
    names: { ...names, ...(finalNorm && { finalNorm }) },
    prefix: "model.",
  };
}

/**
 * Describes what the descendants of Llama share. Reads the epsilon of norms, dropout rates, `intermediate_size`,
 * `tie_word_embeddings`, `pad_token_id`, the activation, biases and the rotation.
 */
function llamaLike(
  config: ConfigReader,
  { vocabSize, contextLength, hiddenSize, heads, keyValueHeads, headDim, layers }: ModelSizes,
  {
    defaults,
    layerNorm,
    norms,
    queryKeyNorm = null,
    mlp = "gated",
    rotary: turned,
    biases = [],
  }: LlamaFamily,
): DecoderDescription {
  const { tied = false, padding = null, activation: named } = defaults;
  unusedDropout(config, defaults.dropouts ?? ["attention_dropout"]);
  const epsilon = config.positiveNumber(defaults.epsilonKey ?? "rms_norm_eps", defaults.epsilon);
  const [attentionBias, mlpBias] = (["attention_bias", "mlp_bias"] as const).map(
    (key) => biases.includes(key) && config.boolean(key, false),
  ) as [boolean, boolean];
  const rotation =
    turned === null
      ? null
      : rotary(config, { headDim, contextLength, theta: { fallback: 10_000 }, ...turned });
  return {
    vocabSize,
    contextLength,
    hiddenSize,
    embedding: { scale: 1, paddingRow: paddingRow(config, vocabSize, padding), learnedPositions: null },
    norm: layerNorm ? { kind: "layer", epsilon, ...layerNorm } : { kind: "rms", epsilon, offset: 0 },
    block: { norms: norms ?? { before: true, after: false }, residual: "sequential", residualScale: 1 },
    attention: {
      heads,
      keyValueHeads,
      headDim,
      projection: "separate",
      bias: { queryKeyValue: attentionBias, output: attentionBias },
      queryKeyNorm,
      softCap: null,
    },
    mlp: {
      kind: mlp,
      activation: activation(config, named?.key ?? "hidden_act", named?.fallback ?? "silu"),
      size: config.positiveInteger("intermediate_size", defaults.mlpSize),
      bias: mlpBias,
    },
    layers: Array.from({ length: layers }, () => alike(headDim, rotation)),
    head: { tied: config.boolean("tie_word_embeddings", tied), bias: false, scale: 1, softCap: null },
  };
}

/** Returns a layer without a window. */
export const alike = (headDim: number, rotary: LayerDescription["rotary"]): LayerDescription => ({
  window: null,
  rotary,
  scoreScale: headDim ** -0.5,
});

/** Returns layers with these windows. */
export const withWindows = (
  layers: readonly LayerDescription[],
  windows: readonly (number | null)[],
): readonly LayerDescription[] => layers.map((layer, index) => ({ ...layer, window: windows[index]! }));
