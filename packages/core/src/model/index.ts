export { checkIds } from "./encode-pair.ts";
export { checkPrompt } from "./encode-pair.ts";
export { bulkTokenizer } from "./yield-to-events.ts";
export { encodePairs, endingOf, renderPrompts, type EncodedPair } from "./encode-pair.ts";
export { fitPairs, fitPrompts, logLikelihoodOf, type FitLimits } from "./encode-pair.ts";
export { drawToken, type Drawn } from "./writing.ts";
export { type Ask, wrapModel } from "./share-generations.ts";
export { acceptToken, beginWriting, completionOf, fitRequests, isWritten, type Writing } from "./writing.ts";
export { nextTurn, yieldToEvents } from "./yield-to-events.ts";
