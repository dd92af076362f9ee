export { byteLetters, tokenByteRanges } from "./align.ts";
export { tokenizerOf, type TransformersTokenizer } from "./auto-tokenizer.ts";
export { type ChatTemplate, type TemplateInput } from "./chat-template.ts";
export { chatRenderer } from "./chat.ts";
export { type Codec } from "./codec.ts";
export { endOfTurnId } from "./end-of-turn.ts";
export { promptRenderer } from "./render-prompt.ts";
export { defaultDate, strftimeOn, templateDate } from "./template-date.ts";
export { plainMessage } from "./template-messages.ts";
