export type { LiveWeight } from "./decoder/causal-lm.ts";
export { useBackend, type Backend, type BackendOptions } from "./backend/use-backend.ts";
export { createCausalLM, type CreateOptions } from "./checkpoint/create.ts";
export { loadCausalLM, type LoadOptions, type LoadProgress } from "./checkpoint/load.ts";
export type { CheckpointLM } from "./checkpoint/model.ts";
export type { SaveOptions } from "./checkpoint/save.ts";
export type { HuggingFaceConfig } from "./families/config.ts";
export type { DownloadProgress } from "./hub/fetch-model.ts";
export { supportedModelTypes } from "./families/registry.ts";
