export { loadTokenizer, type LoadTokenizerOptions } from "./load.ts";
