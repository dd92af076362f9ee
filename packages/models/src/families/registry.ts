import { isRecord } from "@periodic-eval/contracts/options";
import { modelError, quoteShort } from "../folder/model-error.ts";
import { cohere, cohere2 } from "./cohere.ts";
import type { HuggingFaceConfig } from "./config/config-reader.ts";
import { exaone4 } from "./exaone4.ts";
import type { Family } from "./family.ts";
import { gemma, gemma2, gemma3Text, vaultGemma } from "./gemma.ts";
import { glm, glm4 } from "./glm.ts";
import { gptNeoX } from "./gpt-neox.ts";
import { gpt2 } from "./gpt2.ts";
import { arcee, granite, llama, nemotron, seedOss, stableLM, starcoder2 } from "./llama.ts";
import { ministral, ministral3, mistral } from "./mistral.ts";
import { gemma3, mistral3, qwen25VL, qwen3VL } from "./multimodal.ts";
import { olmo2, olmo3 } from "./olmo.ts";
import { opt } from "./opt.ts";
import { phi, phi3 } from "./phi.ts";
import { qwen2, qwen3 } from "./qwen.ts";
import { smollm3 } from "./smollm3.ts";

const families: readonly Family[] = [
  llama,
  mistral,
  qwen2,
  qwen3,
  gpt2,
  gptNeoX,
  gemma,
  gemma2,
  gemma3Text,
  phi3,
  olmo2,
  smollm3,
  ministral,
  ministral3,
  gemma3,
  mistral3,
  qwen25VL,
  qwen3VL,
  seedOss,
  olmo3,
  exaone4,
  vaultGemma,
  starcoder2,
  stableLM,
  granite,
  arcee,
  phi,
  opt,
  nemotron,
  cohere,
  cohere2,
  glm,
  glm4,
];

export const supportedModelTypes: readonly string[] = families.map(({ modelType }) => modelType);

/**
 * Returns the family of a configuration.
 *
 * @param where Names the configuration in errors.
 * @throws PeriodicEvalError `model` for an unsupported `model_type`.
 */
export function familyOf(config: HuggingFaceConfig, where: string): Family {
  const family = families.find(({ modelType }) => modelType === config["model_type"]);
  if (family !== undefined) return family;
  const kind = unsupportedKind(config);
  throw modelError({
    where: `${where}, model_type`,
    path: ["model_type"],
    got: `${quoteShort(config["model_type"])}${kind === null ? "" : `, ${kind}`}`,
    expected: supportedModelTypes.map((type) => `"${type}"`).join(" or "),
    fix: "Use a checkpoint of a supported family, or measure the model where it runs: in PyTorch or on a vLLM server, see docs/guides/servers.md.",
  });
}

/** Returns what kind of model a configuration of an unsupported family stands for; null if its keys do not tell. */
function unsupportedKind(config: HuggingFaceConfig): string | null {
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
