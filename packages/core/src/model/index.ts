export {
  checkPrompt,
  encodePairs,
  endingOf,
  quoteContinuation,
  renderPrompts,
  type EncodedPair,
} from "./encode-pair.ts";
export { appendedIds, encodePrompts, withoutAppended } from "./prompt-ids.ts";
export { bulkTokenizer } from "./bulk-tokenizer.ts";
export { type Ask, wrapModel } from "./wrap-model.ts";
export { nextTurn, yieldToEvents } from "./event-loop.ts";
