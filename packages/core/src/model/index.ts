export { checkIds } from "./check-ids.ts";
export { checkPrompt } from "./check-prompt.ts";
export { bulkTokenizer } from "./bulk-tokenizer.ts";
export { encodePairs, endingOf, renderPrompts, type EncodedPair } from "./encode-pair.ts";
export { fitPairs, fitPrompts, logLikelihoodOf, type FitLimits } from "./fit-scored.ts";
export { drawToken, type Drawn } from "./sampling.ts";
export { type Ask, wrapModel } from "./wrap-model.ts";
export { acceptToken, beginWriting, completionOf, fitRequests, isWritten, type Writing } from "./writing.ts";
export { nextTurn, yieldToEvents } from "./yield-to-events.ts";
