export { byteLetters, spell, tokenByteRanges, type SpelledText } from "./align.ts";
export { tokenizerOf, type TransformersTokenizer } from "./auto-tokenizer.ts";
export { type ChatTemplate, type TemplateInput } from "./answers.ts";
export { chatRenderer, hasAddedBlock, namedRenderers, systemProbe } from "./chat.ts";
export { type Codec } from "./align.ts";
export { tokenizerWith } from "./render-prompt.ts";
export { defaultDate, strftimeOn, templateDate } from "./template-date.ts";
export { checkTemplateKwargs, plainMessage } from "./chat.ts";
export {
  checkIds,
  furthest,
  groupByLength,
  scorePairs,
  scorePrompts,
  sharedLength,
  type FitLimits,
  type ScoredSequence,
} from "./fit-requests.ts";
export {
  acceptToken,
  beginWriting,
  completionOf,
  drawToken,
  fitRequests,
  isWritten,
  writeAll,
  type Drawn,
  type Writing,
} from "./writing.ts";
