import { isRecord } from "@periodic-eval/contracts/options";
import type { Codec } from "@periodic-eval/tokenizers";
import { modelError } from "../folder/model-error.ts";
import type { TokenizerFiles } from "./files.ts";
import { readAddedTokens, type AddedToken } from "./pipeline/added-tokens.ts";
import { cleanUpSpaces } from "./pipeline/decoders.ts";
import { Part } from "./pipeline/part.ts";
import { Pipeline } from "./pipeline/pipeline.ts";
import { rebuiltPipelines, type RebuiltPipeline } from "./transformers/rebuilt-pipelines.ts";
import { specialToken, specialTokens } from "./transformers/special-tokens.ts";
import { classError, plainClass, tokenizerClass } from "./transformers/tokenizer-class.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Where a pipeline comes from.
 * - `"transformers"`: as `AutoTokenizer` of transformers 5.24 loads the folder. For some classes, such as `LlamaTokenizer`
 *   and `GPT2Tokenizer`, it takes only the vocabulary and the merges of `tokenizer.json`, and builds the pipeline itself.
 * - `"tokenizer_json"`: that of `tokenizer.json`, as tokenizers loads it.
 */
export type PipelineSource = "transformers" | "tokenizer_json";

export interface OpenedCodec extends Codec {
  /** Named special tokens, such as `eos_token`. */
  readonly specialTokens: Readonly<Record<string, string>>;
}

/**
 * Opens the codec of a tokenizer. With the pipeline of transformers, a class of transformers may replace that of `tokenizer.json`.
 *
 * @throws PeriodicEvalError `model` for a component or option that is wrong or not supported. `encode` throws the same for a
 *   text with unknown characters if the model has no token for them, and for a text that is not Unicode.
 */
export function openCodec(files: TokenizerFiles, source: PipelineSource): OpenedCodec {
  const { tokenizer, config, model, tokenizerPath, configPath } = files;
  const followsClass = source === "transformers";
  const name = followsClass
    ? tokenizerClass(
        config,
        model,
        files.tokenizerText.includes('"ByteLevel"'),
        (each) => Object.hasOwn(rebuiltPipelines, each),
        configPath,
      )
    : plainClass;
  if (followsClass && config["fix_mistral_regex"] === true)
    throw classError(configPath, "fix_mistral_regex, with which transformers replaces an expression");
  const root = new Part(tokenizerPath, [], tokenizer);
  const rebuilt = name === plainClass ? null : rebuild(name, files, root);
  const tokens = specialTokens(files, ownTokens(root), rebuilt !== null, rebuilt?.defaults ?? {}, configPath);
  const again = {
    none: [],
    default: tokens.all.map(({ content }) => specialToken(content)),
    declared: tokens.all,
  }[rebuilt?.addsSpecialTokensAgain ?? "none"];
  const parts: Fields = rebuilt === null ? tokenizer : { ...rebuilt };
  const json: Fields = {
    ...parts,
    added_tokens: rebuilt === null ? tokenizer["added_tokens"] : [],
    post_processor: tokenizer["post_processor"],
    pre_tokenizer: parts["pre_tokenizer"],
  };
  const pipeline = new Pipeline(json, tokenizerPath, {
    added: [tokens.added, again],
    splitsSpecialTokens: config["split_special_tokens"] === true,
    around:
      rebuilt?.around?.map((key) => (key === null ? null : (tokens.named.get(key)?.content ?? null))) ?? null,
  });
  const cleansUp =
    config["clean_up_tokenization_spaces"] === true &&
    (pipeline.model.type !== "BPE" ||
      config["clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"] === true);
  const specialIds = [...pipeline.added.tokens].filter(([, { content }]) =>
    pipeline.added.isSpecial(content),
  );
  return {
    specialTokens: Object.fromEntries([...tokens.named].map(([key, { content }]) => [key, content])),
    vocabSize: pipeline.vocabSize,
    encode: (text, withSpecialTokens) => {
      if (/\p{Surrogate}/u.test(text)) throw loneSurrogate(tokenizerPath);
      return pipeline.encode(text, withSpecialTokens);
    },
    decode: (ids, withSpecialTokens) => {
      const text = pipeline.decode(ids, withSpecialTokens);
      return cleansUp ? cleanUpSpaces(text) : text;
    },
    tokenOf: (id) => pipeline.tokenOf(id),
    idOf: (token) => pipeline.idOf(token),
    specialIds: new Set(specialIds.map(([id]) => id)),
    isByteLevel: JSON.stringify(json["decoder"] ?? null).includes('"type":"ByteLevel"'),
  };
}

/** Returns the tokens of `tokenizer.json` by the ids that it gives them. */
function ownTokens(root: Part): Map<number, AddedToken> {
  const tokens = readAddedTokens(root);
  return new Map(tokens.map((token, i) => [root.parts("added_tokens")[i]!.integer("id"), token]));
}

function rebuild(name: string, { config, map }: TokenizerFiles, root: Part): RebuiltPipeline {
  const settings = config["added_tokens_decoder"] === undefined ? { ...config, ...map } : config;
  const option = <T>(key: string, otherwise: T): T => {
    const value = key in settings ? settings[key] : otherwise;
    return (isRecord(value) && "content" in value ? value["content"] : value) as T;
  };
  return rebuiltPipelines[name]!(option, root.part("model").fields);
}

const loneSurrogate = (where: string) =>
  modelError({
    where,
    got: "a text with half of a surrogate pair",
    expected: "a string of Unicode characters",
    fix: "Repair the text, with `text.toWellFormed()` for example.",
  });
