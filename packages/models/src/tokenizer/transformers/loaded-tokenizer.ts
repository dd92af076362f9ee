import { isRecord } from "@periodic-eval/contracts/options";
import { readAddedTokens, type AddedToken } from "../pipeline/added-tokens.ts";
import { Part } from "../pipeline/part.ts";
import { Pipeline } from "../pipeline/pipeline.ts";
import { rebuiltPipelines, type RebuiltPipeline } from "./rebuilt-pipelines.ts";
import { specialToken, specialTokens, type TokenFiles } from "./special-tokens.ts";
import { classError, plainClass, tokenizerClass } from "./tokenizer-class.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface FolderFiles extends TokenFiles {
  /** `tokenizer.json`, parsed and as text. */
  readonly tokenizer: Fields;
  readonly tokenizerText: string;
  /** `config.json`; empty if there is none. */
  readonly model: Fields;
  /** Paths of `tokenizer.json` and `tokenizer_config.json`, for errors. */
  readonly tokenizerPath: string;
  readonly configPath: string;
}

export interface LoadedTokenizer {
  readonly pipeline: Pipeline;
  /** Named special tokens, such as `eos_token`. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Whether decoding removes spaces before punctuation. */
  readonly cleansUp: boolean;
  readonly isByteLevel: boolean;
}

/**
 * Loads a tokenizer as transformers 5.24 does with `AutoTokenizer.from_pretrained`.
 *
 * @param followsClass Whether a class of transformers may replace the pipeline of `tokenizer.json`.
 */
export function loadAsTransformers(files: FolderFiles, followsClass: boolean): LoadedTokenizer {
  const { tokenizer, config, model, tokenizerPath, configPath } = files;
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
  return {
    pipeline,
    specialTokens: Object.fromEntries([...tokens.named].map(([key, { content }]) => [key, content])),
    cleansUp:
      config["clean_up_tokenization_spaces"] === true &&
      (pipeline.model.type !== "BPE" ||
        config["clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"] === true),
    isByteLevel: JSON.stringify(json["decoder"] ?? null).includes('"type":"ByteLevel"'),
  };
}

/** Returns the tokens of `tokenizer.json` by the ids that it gives them. */
function ownTokens(root: Part): Map<number, AddedToken> {
  const tokens = readAddedTokens(root);
  return new Map(tokens.map((token, i) => [root.parts("added_tokens")[i]!.integer("id"), token]));
}

function rebuild(name: string, { config, map }: FolderFiles, root: Part): RebuiltPipeline {
  const settings = config["added_tokens_decoder"] === undefined ? { ...config, ...map } : config;
  const option = <T>(key: string, otherwise: T): T => {
    const value = key in settings ? settings[key] : otherwise;
    return (isRecord(value) && "content" in value ? value["content"] : value) as T;
  };
  return rebuiltPipelines[name]!(option, root.part("model").fields);
}
