import type { Codec } from "@periodic-eval/tokenizers";
import { modelError } from "../folder/model-error.ts";
import type { TokenizerFiles } from "./files.ts";
import { cleanUpSpaces } from "./pipeline/decoders.ts";
import { loadAsTransformers } from "./transformers/loaded-tokenizer.ts";

/**
 * Where a pipeline comes from.
 * - `"transformers"`: as `AutoTokenizer` of transformers 5.24 loads the folder. For some classes, such as `LlamaTokenizer`
 *   and `GPT2Tokenizer`, it takes only the vocabulary and the merges of `tokenizer.json`, and builds the pipeline itself.
 * - `"tokenizer_json"`: that of `tokenizer.json`, as tokenizers loads it.
 */
export type Pipeline = "transformers" | "tokenizer_json";

export interface OpenedCodec extends Codec {
  /** Named special tokens, such as `eos_token`. */
  readonly specialTokens: Readonly<Record<string, string>>;
}

/**
 * Opens the codec of a tokenizer.
 *
 * @throws PeriodicEvalError `model` for a component or option that is wrong or not supported. `encode` throws the same for a
 *   text with unknown characters if the model has no token for them, and for a text that is not Unicode.
 */
export function openCodec(files: TokenizerFiles, pipeline: Pipeline): OpenedCodec {
  const loaded = loadAsTransformers(files, pipeline === "transformers");
  const { pipeline: tokenizer, specialTokens, cleansUp, isByteLevel } = loaded;
  const specialIds = new Set<number>();
  for (const [id, { content }] of tokenizer.added.tokens)
    if (tokenizer.added.isSpecial(content)) specialIds.add(id);
  return {
    specialTokens,
    vocabSize: tokenizer.vocabSize,
    encode: (text, withSpecialTokens) => {
      if (/\p{Surrogate}/u.test(text)) throw loneSurrogate(files.tokenizerPath);
      return tokenizer.encode(text, withSpecialTokens);
    },
    decode: (ids, withSpecialTokens) => {
      const text = tokenizer.decode(ids, withSpecialTokens);
      return cleansUp ? cleanUpSpaces(text) : text;
    },
    tokenOf: (id) => tokenizer.tokenOf(id),
    idOf: (token) => tokenizer.idOf(token),
    specialIds,
    isByteLevel,
  };
}

const loneSurrogate = (where: string) =>
  modelError({
    where,
    got: "a text with half of a surrogate pair",
    expected: "a string of Unicode characters",
    fix: "Repair the text, with `text.toWellFormed()` for example.",
  });
