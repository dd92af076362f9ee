import { modelError, quoteShort } from "../folder/model-error.ts";
import type { HuggingFaceConfig } from "./config/config-reader.ts";
import type { Family } from "./family.ts";
import { arcee } from "./arcee.ts";
import { cohere, cohere2 } from "./cohere.ts";
import { exaone4 } from "./exaone4.ts";
import { gemma } from "./gemma.ts";
import { gemma2, vaultGemma } from "./gemma2.ts";
import { gemma3Text } from "./gemma3-text.ts";
import { glm, glm4 } from "./glm.ts";
import { gpt2 } from "./gpt2.ts";
import { gptNeoX } from "./gpt-neox.ts";
import { granite } from "./granite.ts";
import { llama } from "./llama.ts";
import { ministral3 } from "./ministral3.ts";
import { ministral, mistral } from "./mistral.ts";
import { gemma3, mistral3, qwen25VL, qwen3VL } from "./multimodal.ts";
import { nemotron } from "./nemotron.ts";
import { olmo2 } from "./olmo2.ts";
import { olmo3 } from "./olmo3.ts";
import { opt } from "./opt.ts";
import { phi } from "./phi.ts";
import { phi3 } from "./phi3.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";
import { seedOss } from "./seed-oss.ts";
import { smollm3 } from "./smollm3.ts";
import { stableLM } from "./stablelm.ts";
import { starcoder2 } from "./starcoder2.ts";
import { unsupportedKind } from "./unsupported-kind.ts";

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
