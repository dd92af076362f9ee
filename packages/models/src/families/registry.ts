import { modelError, quoteShort } from "../folder/model-error.ts";
import type { HuggingFaceConfig } from "./config/config-reader.ts";
import type { Family } from "./family.ts";
import { gemma } from "./gemma.ts";
import { gemma2 } from "./gemma2.ts";
import { gemma3Text } from "./gemma3-text.ts";
import { gpt2 } from "./gpt2.ts";
import { gptNeoX } from "./gpt-neox.ts";
import { llama } from "./llama.ts";
import { mistral } from "./mistral.ts";
import { olmo2 } from "./olmo2.ts";
import { phi3 } from "./phi3.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";
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
    fix: "Use a checkpoint of a supported family.",
  });
}
