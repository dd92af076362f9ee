import type { ConfigReader } from "./config/config-reader.ts";
import { finishOuterConfig } from "./config/unused-keys.ts";
import { withPrefix, type Family, type Layout } from "./family.ts";
import { gemma3Text } from "./gemma.ts";
import { ministral, ministral3, mistral } from "./mistral.ts";
import { qwen25VLText, qwen3VLText } from "./qwen.ts";

interface MultimodalFamily {
  readonly modelType: string;
  /** The families of its text part, the first by default; all have the same names. */
  readonly text: readonly [Family, ...Family[]];
  /** Default of `tie_word_embeddings`. */
  readonly tied: boolean;
  readonly layouts: readonly Layout[];
  /** Whether the keys of the text part may stand beside `vision_config`. Default: false. */
  readonly isFlat?: boolean;
}

/**
 * Returns the text part of a multimodal family. For sequences without images every position of it has its ordinary number, and
 * attention is causal.
 */
function textPart({ modelType, text, tied, layouts, isFlat = false }: MultimodalFamily): Family {
  const prefix = "model.language_model.";
  const [usual] = text;
  return {
    modelType,
    describe(config) {
      const isTied = config.boolean("tie_word_embeddings", tied);
      for (const key of visionKeys) config.get(key);
      const nested = config.nested("text_config");
      if (nested === null && !isFlat) throw config.valueError("text_config", "an object");
      const family = nested === null ? usual : familyOfText(nested, text);
      const described = family.describe(nested ?? config);
      if (nested !== null) finishOuterConfig(config);
      // Older versions of transformers saved this option of Qwen2.5-VL in the text part.
      const head = { ...described.head, tied: isTied || (isFlat && described.head.tied) };
      return { ...described, head };
    },
    names: withPrefix(usual.names, usual.prefix, { prefix, head: usual.names.head }),
    prefix,
    layouts: [...layouts, { prefix: "language_model.", head: usual.names.head }],
    otherParts: /^(model\.)?(vision_tower|vision_model|multi_modal_projector|visual)\./,
  };
}

function familyOfText(text: ConfigReader, families: readonly [Family, ...Family[]]): Family {
  const types = families.map(({ modelType }) => modelType);
  const type = text.oneOf("model_type", types, types[0]!);
  return families.find(({ modelType }) => modelType === type)!;
}

/** Keys without effect on text, besides ids of tokens. */
const visionKeys = [
  "vision_config",
  "mm_tokens_per_image",
  "image_token_index",
  "boi_token_index",
  "eoi_token_index",
  "projector_hidden_act",
  "vision_feature_layer",
  "multimodal_projector_bias",
  "spatial_merge_size",
];

/** The layout of transformers before 4.52. */
const olderLayout = { prefix: "language_model.model.", head: "language_model.lm_head" };

/** Gemma 3, 4B to 27B. */
export const gemma3 = textPart({
  modelType: "gemma3",
  text: [gemma3Text],
  tied: true,
  layouts: [olderLayout],
});

/** Mistral Small 3.1 and 3.2, Devstral, Ministral 3. */
export const mistral3 = textPart({
  modelType: "mistral3",
  text: [mistral, ministral, ministral3],
  tied: true,
  layouts: [olderLayout],
});

/** Qwen2.5-VL. */
export const qwen25VL = textPart({
  modelType: "qwen2_5_vl",
  text: [qwen25VLText],
  tied: false,
  layouts: [{ prefix: "model.", head: "lm_head" }],
  isFlat: true,
});

/** Qwen3-VL. */
export const qwen3VL = textPart({ modelType: "qwen3_vl", text: [qwen3VLText], tied: false, layouts: [] });
