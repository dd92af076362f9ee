export type { LiveWeight } from "./decoder/causal-lm.ts";
export { nativeBackendFolder } from "#backends";
export { useBackend, type Backend, type BackendOptions } from "./backend/use-backend.ts";
export { createCausalLM, type CreateOptions } from "./checkpoint/create-causal-lm.ts";
export { loadCausalLM, type LoadOptions, type LoadProgress } from "./checkpoint/load-causal-lm.ts";
export { outlineCausalLM, type CausalLMOutline, type OutlineOptions } from "./outline/outline.ts";
export type { CheckpointLM } from "./checkpoint/model.ts";
export type { SaveOptions } from "./checkpoint/save.ts";
export type { HuggingFaceConfig } from "./families/config/config-reader.ts";
export type { DownloadProgress } from "./hub/fetch-model.ts";
export { openLocalJudge, type LocalJudge } from "./judges/open-local-judge.ts";
export { adapterFolder, loadLora, type LoadLoraOptions } from "./lora/load-lora.ts";
export type { LoraLM } from "./lora/lora-model.ts";
export { loraJsonSchema, withLora, type LoraOptions } from "./lora/with-lora.ts";
export {
  openCheckpoint,
  outlineCheckpoint,
  type CheckpointOutline,
  type OpenedCheckpoint,
  type OpenOptions,
} from "./open-checkpoint.ts";
export { supportedModelTypes } from "./families/registry.ts";
