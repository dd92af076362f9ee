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
  throw modelError({
    where: `${where}, model_type`,
    path: ["model_type"],
    got: quoteShort(config["model_type"]),
    expected: supportedModelTypes.map((type) => `"${type}"`).join(" or "),
    fix: "Use a checkpoint of a supported family, or measure the model where it runs: in PyTorch or on a vLLM server, see docs/guides/servers.md.",
  });
}
