import * as z from "zod";
import { errorMessage, parseOptions, isRecord } from "@periodic-eval/contracts/options";
import type { Tokenizer } from "@periodic-eval/core";
import { hashText } from "@periodic-eval/core/random";
import {
  chatRenderer,
  defaultDate,
  namedRenderers,
  templateDate,
  tokenizerWith,
  type ChatTemplate,
  checkTemplateKwargs,
  plainMessage,
  strftimeOn,
  type Codec,
} from "@periodic-eval/tokenizers";
import { modelError } from "../folder/model-error.ts";
import { onDownloadSchema, type DownloadProgress, modelFolder } from "../hub/fetch-model.ts";
import { compileTemplate as compileJinja, type Input } from "../jinja/template.ts";
import { readTokenizerFiles, type TokenizerFiles } from "./files.ts";
import { readAddedTokens, type AddedToken } from "./pipeline/added-tokens.ts";
import { cleanUpSpaces } from "./pipeline/decoders.ts";
import { Part } from "./pipeline/part.ts";
import { Pipeline } from "./pipeline/pipeline.ts";
import { rebuiltPipelines, type RebuiltPipeline } from "./transformers/rebuilt-pipelines.ts";
import { specialToken, specialTokens } from "./transformers/special-tokens.ts";
import { classError, plainClass, tokenizerClass } from "./transformers/tokenizer-class.ts";

export interface LoadTokenizerOptions {
  /** Where the pipeline comes from. Default: `"transformers"`, as transformers 5.24 loads the folder. */
  readonly pipeline?: PipelineSource;
  /**
   * The value of today's date in chat templates, as `YYYY-MM-DD`. Default: `"2024-07-26"`, the fallback of the Llama 3
   * templates. The clock is never read, so prompts are the same on every day.
   */
  readonly date?: string;
  /** Called with the progress of each file that is downloaded from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

const optionsSchema = z.strictObject({
  pipeline: z.enum(["transformers", "tokenizer_json"]).default("transformers"),
  date: templateDate.default(defaultDate),
  onDownload: onDownloadSchema.optional(),
} satisfies Record<keyof LoadTokenizerOptions, z.ZodType>);

/**
 * Loads the tokenizer of a local Hugging Face folder, or of a model on the hub as `owner/name` or `owner/name@revision`; a
 * local folder of that name takes precedence. Reads `tokenizer.json` and, if present, `tokenizer_config.json`,
 * `special_tokens_map.json`, `added_tokens.json`, `generation_config.json`, `config.json`, `chat_template.jinja` and `additional_chat_templates/`. Encodings
 * and decodings equal transformers 5.24 (tokenizers 0.23); a component that is not supported is an error. Needs no
 * TensorFlow.js.
 *
 * A chat with tools has the template `tool_use`, if the folder has one, others the template `default`, as in transformers.
 * `render` throws a `model` error for a chat if the folder has no such template, if the template raises (its error is the
 * `cause`), or if the template cannot produce `"no_system_block"` or `"continue"`.
 *
 * @throws PeriodicEvalError `model` if a file is missing, damaged or not supported; `config` for a wrong option.
 */
export async function loadTokenizer(source: string, options: LoadTokenizerOptions = {}): Promise<Tokenizer> {
  const { pipeline, date, onDownload } = parseOptions("loadTokenizer options", optionsSchema, options);
  const folder = await modelFolder(source, { need: "tokenizer", ...(onDownload && { onDownload }) });
  const files = await readTokenizerFiles(folder);
  const codec = openCodec(files, pipeline);
  const rendererFor = namedRenderers(files.chatTemplates, (template, name) => {
    const where = `the chat template ${name === "default" ? "" : `${name} `}of ${folder}`;
    return chatRenderer(compile(template, codec, where, date), where, template);
  });
  const names = [...files.chatTemplates.keys()].sort().join(", ");

  const noTemplate = () =>
    modelError({
      where: folder,
      got: names === "" ? "a tokenizer without a chat template" : `only the chat templates ${names}`,
      expected:
        names === ""
          ? "chat_template.jinja, or chat_template in tokenizer_config.json"
          : "a chat template with the name default, or tool_use for a chat with tools",
      fix:
        names === ""
          ? "Add the template, or use plain text prompts."
          : "Save the template to use as chat_template.jinja, which is the default.",
      detail: { kind: "no-template" },
    });

  const eos = codec.specialTokens["eos_token"];
  return tokenizerWith(codec, {
    fingerprint: hashText(JSON.stringify([pipeline, date, files.identity])),
    eosId: eos === undefined ? null : (codec.idOf(eos) ?? null),
    endIds: files.eosIds,
    rendererFor,
    noTemplate,
  });
}

function compile(
  chatTemplate: string,
  { specialTokens }: OpenedCodec,
  where: string,
  date: string,
): ChatTemplate {
  try {
    return compileTemplate(chatTemplate, specialTokens, date);
  } catch (cause) {
    throw modelError({
      where,
      got: `the error "${errorMessage(cause)}"`,
      expected: "a template that compiles",
      fix: "Correct the template, or remove it and use plain text prompts.",
      cause,
    });
  }
}

/** Variables of a template besides the messages, such as `bos_token`. */
type TemplateVariables = Readonly<Record<string, string>>;

/**
 * Compiles a chat template as transformers does, except that `strftime_now` uses `date` instead of the clock. The template
 * `documents` come from the kwargs. Errors that the template raises are thrown unchanged.
 */
export function compileTemplate(
  source: string,
  variables: TemplateVariables,
  date = defaultDate,
): ChatTemplate {
  const render = compileJinja(source, strftimeOn(date));
  return ({ messages, addGenerationPrompt, tools = null, kwargs = {} }) => {
    checkTemplateKwargs(kwargs, reserved);
    return render({
      documents: null,
      ...variables,
      ...kwargs,
      messages: messages.map((message): Input => ({ ...plainMessage(message) })),
      tools,
      add_generation_prompt: addGenerationPrompt,
    });
  };
}

/** Variables that the chat sets. */
const reserved = ["messages", "add_generation_prompt", "tools"];

type Fields = Readonly<Record<string, unknown>>;

/**
 * Where a pipeline comes from.
 * - `"transformers"`: as `AutoTokenizer` of transformers 5.24 loads the folder. For some classes, such as `LlamaTokenizer`
 *   and `GPT2Tokenizer`, it takes only the vocabulary and the merges of `tokenizer.json`, and builds the pipeline itself.
 * - `"tokenizer_json"`: that of `tokenizer.json`, as tokenizers loads it.
 */
type PipelineSource = "transformers" | "tokenizer_json";

interface OpenedCodec extends Codec {
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
  const hasByteLevel = (part: unknown) => JSON.stringify(part ?? null).includes('"type":"ByteLevel"');
  const isByteLevel = hasByteLevel(json["decoder"]);
  // A ByteLevel normalizer writes the text in the alphabet of the tokens.
  const spellsBytes = isByteLevel && !hasByteLevel(json["normalizer"]);
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
    isByteLevel,
    spell: (text) => ({ ...pipeline.spell(text), isByteLevel: spellsBytes }),
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
