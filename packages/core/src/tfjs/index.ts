export * from "./causal-lm.ts";
export { fingerprintWeights, type FingerprintOptions } from "./fingerprint.ts";
export { fitCallbacks, type FitCallbacks, type FitCallbacksOptions } from "./fit-callbacks.ts";
export { tfjsGuards, type TfjsGuardsOptions } from "./guards.ts";
export { inMemory, type InMemoryOptions } from "./in-memory.ts";
export { fromLayersModel, type LayersModel, type LayersModelOptions } from "./layers-model.ts";
export { blockOf, everySegment } from "./token-block.ts";
export { variableName, weightName } from "./variable-names.ts";
export { optimizerState, type HasSlots, type OptimizerState } from "./optimizer-slots.ts";
