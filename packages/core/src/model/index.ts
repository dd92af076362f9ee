export { checkIds } from "./check-ids.ts";
export { checkPrompt } from "./check-prompt.ts";
export { encodePrompt, endingOf } from "./encode-pair.ts";
export { fitPair, fitPrompt, logLikelihoodOf, type FitLimits } from "./fit-scored.ts";
export { drawToken, type Drawn } from "./sampling.ts";
export { type Ask, wrapModel } from "./wrap-model.ts";
export { acceptToken, beginWriting, completionOf, fitRequest, isWritten, type Writing } from "./writing.ts";
export { mapInTurns, nextTurn, yieldToEvents } from "./yield-to-events.ts";
