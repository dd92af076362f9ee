export { charTokenizer, type CharTokenizerOptions } from "./char-tokenizer.ts";
export { loadTokenizer, type LoadTokenizerOptions } from "./load-tokenizer.ts";
