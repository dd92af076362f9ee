import { PeriodicEvalError } from "@periodic-eval/core";
import type { HuggingFaceConfig } from "./config.ts";
import type { Family } from "./family.ts";
import { llama } from "./llama.ts";

const families: readonly Family[] = [llama];

export const supportedModelTypes: readonly string[] = families.map(({ modelType }) => modelType);

/** The family of a configuration. Throws a `model` error where there is none. */
export function familyOf(config: HuggingFaceConfig, where: string): Family {
  const family = families.find(({ modelType }) => modelType === config["model_type"]);
  if (family !== undefined) return family;
  throw new PeriodicEvalError({
    code: "model",
    where: `${where}, model_type`,
    got: JSON.stringify(config["model_type"]) ?? "nothing",
    expected: supportedModelTypes.map((type) => `"${type}"`).join(" or "),
    fix: "Use a checkpoint of a supported family.",
  });
}
