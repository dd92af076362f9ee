import { join } from "@periodic-eval/store/platform";
import { isRecord, isCount } from "@periodic-eval/contracts/options";
import { additionalTemplates } from "../folder/file-names.ts";
import { modelError, quoteShort } from "../folder/model-error.ts";
import { listNames, parseJsonObject, readText } from "../folder/read-file.ts";
import { partError } from "./pipeline/part.ts";

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
  /** The sources of the chat templates by name. A template without a name is `default`. */
  readonly chatTemplates: ReadonlyMap<string, string>;
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
  const [templateText, templates, ...read] = await Promise.all([
    readText(folder, "chat_template.jinja"),
    readAdditionalTemplates(folder),
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
    chatTemplates: new Map(
      templateText === null && templates.length === 0
        ? templatesOf(config)
        : [...(templateText === null ? [] : [["default", templateText] as const]), ...templates],
    ),
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
      ...(templates.length === 0 ? [] : [templates]),
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

type NamedTemplate = readonly [name: string, source: string];

/** Reads the templates that save_pretrained writes beside the default one, sorted by name. */
async function readAdditionalTemplates(folder: string): Promise<readonly NamedTemplate[]> {
  const files = await listNames(folder, additionalTemplates);
  const jinja = files.filter((file) => file.endsWith(".jinja")).sort();
  const texts = await Promise.all(jinja.map((file) => readText(folder, join(additionalTemplates, file))));
  return jinja.map((file, i) => [file.slice(0, -".jinja".length), texts[i]!]);
}

function templatesOf({ chat_template: template }: TokenizerConfig): readonly NamedTemplate[] {
  if (template === undefined) return [];
  if (typeof template === "string") return [["default", template]];
  return template.map(({ name, template: source }) => [name, source]);
}

export interface TokenizerConfig {
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[];
  readonly [key: string]: unknown;
}

/** Checks the fields of `tokenizer_config.json` that this package reads, except those of tokens. */
export function checkConfig(json: Fields, file: string): TokenizerConfig {
  const { chat_template: template, tokenizer_class: name, fast_tokenizer_files: versions } = json;
  const isNamed = (entry: unknown) =>
    isRecord(entry) && typeof entry["name"] === "string" && typeof entry["template"] === "string";
  const isTemplate =
    template == null || typeof template === "string" || (Array.isArray(template) && template.every(isNamed));
  if (!isTemplate)
    throw partError(
      file,
      ["chat_template"],
      quoteShort(template),
      "a string, or an array of { name, template }",
    );
  if (name != null && typeof name !== "string")
    throw partError(file, ["tokenizer_class"], quoteShort(name), "a string");
  if (versions != null)
    throw partError(
      file,
      ["fast_tokenizer_files"],
      quoteShort(versions),
      "one tokenizer.json for all versions of transformers",
      "Save the tokenizer again with save_pretrained.",
    );
  return {
    ...json,
    ...("chat_template" in json && { chat_template: template ?? undefined }),
  } as TokenizerConfig;
}

/** Checks an `eos_token_id`: an id, an array of ids, or null. */
export function checkEosIds(value: unknown, file: string): readonly number[] {
  const ids: readonly unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  if (!ids.every((id) => isCount(id)))
    throw partError(file, ["eos_token_id"], quoteShort(value), "integers of 0 or more");
  return ids;
}
