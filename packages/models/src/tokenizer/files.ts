import { join } from "@periodic-eval/store/platform";
import { isRecord } from "@periodic-eval/contracts/options";
import { modelError } from "../folder/model-error.ts";
import { parseJsonObject, readText } from "../folder/read-file.ts";
import { checkConfig, checkEosIds, type TokenizerConfig } from "./check-files.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The parsed files of a tokenizer. */
export interface TokenizerFiles {
  readonly folder: string;
  /** `tokenizer.json`, parsed and as text. */
  readonly tokenizer: Fields;
  readonly tokenizerText: string;
  /** `config.json`; empty if there is none. */
  readonly model: Fields;
  /** Paths of `tokenizer.json` and `tokenizer_config.json`, for errors. */
  readonly tokenizerPath: string;
  readonly configPath: string;
  /** `tokenizer_config.json`. */
  readonly config: TokenizerConfig;
  /** `special_tokens_map.json`. */
  readonly map: Fields;
  /** `added_tokens.json`: ids by token, of old folders. */
  readonly added: Fields;
  /** The source of the default chat template; null if the folder has none. */
  readonly chatTemplate: string | null;
  /** Ids that end a reply, of `generation_config.json`, or of `config.json` if it has none. */
  readonly eosIds: readonly number[];
  /** JSON of everything that encodings, renderings and ends of replies depend on. */
  readonly identity: string;
}

const names = {
  tokenizer: "tokenizer.json",
  config: "tokenizer_config.json",
  map: "special_tokens_map.json",
  added: "added_tokens.json",
  generation: "generation_config.json",
  model: "config.json",
} as const;

type Name = keyof typeof names;

/** Reads a Hugging Face tokenizer folder. Only `tokenizer.json` is required. */
export async function readTokenizerFiles(folder: string): Promise<TokenizerFiles> {
  const keys = Object.keys(names) as Name[];
  const [templateText, ...read] = await Promise.all([
    readText(folder, "chat_template.jinja"),
    ...keys.map((key) => readText(folder, names[key])),
  ]);
  const texts = Object.fromEntries(keys.map((key, i) => [key, read[i] ?? null])) as Record<
    Name,
    string | null
  >;
  if (texts.tokenizer === null) {
    throw modelError({
      where: join(folder, names.tokenizer),
      got: "no such file",
      expected: "a fast Hugging Face tokenizer",
      fix: "Save the tokenizer with save_pretrained, or pass a folder that has tokenizer.json.",
    });
  }
  const parsed = (key: Name) =>
    parseJsonObject(texts[key] ?? "{}", join(folder, names[key]), "Download or write the file again.");
  const config = checkConfig(parsed("config"), join(folder, names.config));
  const model = parsed("model");
  const eosIds = readEosIds(parsed("generation"), model, folder);
  const { model_type, model_name, tokenizer_class } = model;
  return {
    folder,
    tokenizer: parsed("tokenizer"),
    tokenizerText: texts.tokenizer,
    tokenizerPath: join(folder, names.tokenizer),
    config,
    configPath: join(folder, names.config),
    map: parsed("map"),
    added: parsed("added"),
    model,
    chatTemplate: templateText ?? templateOf(config),
    eosIds,
    // Evaluations set their own sampling, so only the ids of the generation file count.
    identity: JSON.stringify([
      texts.tokenizer,
      texts.config,
      texts.map,
      texts.added,
      templateText,
      eosIds,
      [model_type, model_name, tokenizer_class].map((value) => value ?? null),
    ]),
  };
}

/** Reads the ids as transformers does, which makes a generation configuration of `config.json` if there is none. */
function readEosIds(generation: Fields, model: Fields, folder: string): readonly number[] {
  const ids = checkEosIds(generation["eos_token_id"], join(folder, names.generation));
  if (ids.length > 0) return ids;
  const text = isRecord(model["text_config"]) ? model["text_config"] : {};
  return checkEosIds(model["eos_token_id"] ?? text["eos_token_id"], join(folder, names.model));
}

function templateOf({ chat_template: template }: TokenizerConfig): string | null {
  if (template === undefined || typeof template === "string") return template ?? null;
  return template.find(({ name }) => name === "default")?.template ?? null;
}
