export { loadTokenizer, type LoadTokenizerOptions } from "./load-tokenizer.ts";
