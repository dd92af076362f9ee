import { isRecord } from "@periodic-eval/contracts/options";
import { quoteShort } from "../folder/model-error.ts";
import type { HuggingFaceConfig } from "./config/config-reader.ts";

/** Returns what kind of model a configuration of an unsupported family stands for; null if its keys do not tell. */
export function unsupportedKind(config: HuggingFaceConfig): string | null {
  const part = textPartOf(config);
  if (part !== null) {
    const kind = ofText(part);
    const type = quoteShort(part["model_type"]);
    return `a multimodal model whose text part is ${type}${kind === null ? "" : `, ${kind}`}`;
  }
  return isRecord(config["vision_config"]) ? "a multimodal model" : ofText(config);
}

function ofText(config: HuggingFaceConfig): string | null {
  const keys = Object.keys(config).filter((key) => config[key] !== null);
  if (keys.some((key) => ofHybrids.test(key)) || hasOtherLayers(config["layer_types"]))
    return "a hybrid of attention and other layers";
  return keys.some((key) => ofExperts.test(key)) ? "a mixture of experts" : null;
}

/** Keys of Mamba, recurrent and convolutional layers. */
const ofHybrids =
  /^(mamba_\w+|ssm_\w+|state_size|conv_kernel|conv_L_cache|d_conv|attn_layer_(period|offset|indices)|layers_block_type|hybrid_override_pattern|block_types|full_attention_interval|linear_\w+_head_dim|lru_width)$/;

const ofExperts = /^(num_(local_)?experts|n_routed_experts|moe_\w+|num_experts_per_tok|expert_\w+)$/;

const hasOtherLayers = (types: unknown): boolean =>
  Array.isArray(types) && types.some((type) => !/^(full_|sliding_|chunked_)?attention$/.test(String(type)));

/** Returns the configuration of the text part of a multimodal model, at any of its usual places. */
function textPartOf(config: HuggingFaceConfig): HuggingFaceConfig | null {
  for (const key of ["thinker_config", "text_config", "llm_config", "language_config", "decoder"]) {
    const part = config[key];
    if (isRecord(part)) return textPartOf(part) ?? part;
  }
  return null;
}
