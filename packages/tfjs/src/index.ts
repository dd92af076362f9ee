export type * from "./causal-lm/causal-lm.ts";
export type * from "./causal-lm/incremental.ts";
export { evaluationMode, variableName, weightName } from "./causal-lm/causal-lm.ts";
export { inEvaluation, windowLength } from "./causal-lm/forward.ts";
export { drawKernel } from "./generation/draws.ts";
export { adamWKernel, FusedCall, fusedCallKernel } from "./causal-lm/fused-call.ts";
export { fromLayersModel, type LayersModel, type LayersModelOptions } from "./causal-lm/layers-model.ts";
export { targetLosses, type TargetLosses } from "./causal-lm/target-losses.ts";
export { blockOf, everySegment } from "./causal-lm/incremental.ts";
export { fitCallbacks, type FitCallbacks, type FitCallbacksOptions } from "./fit-callbacks.ts";
export { fingerprintWeights, type FingerprintOptions } from "./guards/fingerprint.ts";
export { tfjsGuards, type TfjsGuardsOptions } from "./guards/guards.ts";
export { optimizerState, type HasSlots, type OptimizerState } from "./guards/optimizer-slots.ts";
export {
  engineMemory,
  isOnDevice,
  memoryErrorOf,
  nativeRemedy,
  type EngineMemory,
  type MemoryAdvice,
} from "./batching/engine-memory.ts";
export { requireBackend } from "./in-memory.ts";
export { inMemory, type InMemoryModel, type InMemoryOptions } from "./in-memory.ts";
export type { TransformersTokenizer } from "@periodic-eval/tokenizers";
