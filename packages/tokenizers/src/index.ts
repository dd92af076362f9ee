export { byteLetters, tokenByteRanges } from "./align.ts";
export { tokenizerOf, type TransformersTokenizer } from "./auto-tokenizer.ts";
export { type ChatTemplate, type TemplateInput } from "./chat-template.ts";
export { chatRenderer, hasAddedBlock, systemProbe } from "./chat.ts";
export { type Codec } from "./codec.ts";
export { tokenizerWith } from "./render-prompt.ts";
export { defaultDate, strftimeOn, templateDate } from "./template-date.ts";
export { checkTemplateKwargs, plainMessage } from "./template-messages.ts";
