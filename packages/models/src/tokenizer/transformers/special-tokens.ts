import { isRecord } from "@periodic-eval/contracts/options";
import { quoteShort } from "../../folder/model-error.ts";
import type { AddedToken } from "../pipeline/added-tokens.ts";
import { partError } from "../pipeline/part.ts";
import type { TokenizerFiles } from "../files.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface SpecialTokens {
  /** Named tokens, such as `eos_token`. */
  readonly named: ReadonlyMap<string, AddedToken>;
  /** Tokens to add to those of the pipeline. */
  readonly added: readonly AddedToken[];
  /** All special tokens of the configuration. */
  readonly all: readonly AddedToken[];
}

/** The order in which transformers adds named tokens; names of models follow. */
const standardNames = [
  "bos_token",
  "eos_token",
  "unk_token",
  "sep_token",
  "pad_token",
  "cls_token",
  "mask_token",
];

/** Returns a special token with the default properties of transformers. */
export const specialToken = (content: string): AddedToken => token(content);

const token = (content: string, properties: Partial<AddedToken> = {}): AddedToken => {
  const special = properties.special ?? true;
  return {
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: !special,
    ...properties,
    special,
  };
};

/**
 * Collects the special tokens as `PreTrainedTokenizerBase._from_pretrained` and `TokenizersBackend.__init__` of transformers
 * 5.24 do.
 *
 * @param stored The tokens of `tokenizer.json`, by id.
 * @param isRebuilt Whether the pipeline starts without the tokens of `tokenizer.json`.
 * @param defaults Named tokens of the class, for names that the files lack.
 * @param where The folder's `tokenizer_config.json`, for errors.
 */
export function specialTokens(
  { config, map, added }: Pick<TokenizerFiles, "config" | "map" | "added">,
  stored: ReadonlyMap<number, AddedToken>,
  isRebuilt: boolean,
  defaults: Readonly<Record<string, string>>,
  where: string,
): SpecialTokens {
  const decoder = config["added_tokens_decoder"];
  const { settings, listed, specials } = decoder === undefined ? withMap(config, map) : withMap(config, {});
  const namedValues = namesOf(settings, defaults);
  const declared = decoder === undefined ? oldTokens(added, stored, specials) : readDecoder(decoder, where);
  const byContent = new Map([...declared.values()].map((each) => [each.content, each]));

  const named = new Map<string, AddedToken>();
  for (const [name, value] of namedValues) {
    const read = readToken(value, where, name);
    const known = standardNames.includes(name) ? byContent.get(read.content) : undefined;
    named.set(name, known ?? read);
  }
  const namedContents = new Set([...named.values()].map(({ content }) => content));
  const toAdd = [...declared].toSorted(([a], [b]) => a - b).map(([, each]) => each);
  const contents = new Set([...(isRebuilt ? [] : stored.values()), ...toAdd].map(({ content }) => content));
  const extraTokens = listed.map((value) => readToken(value, where, "extra_special_tokens"));
  // A token is left out if it is there already, or named before with the same properties; of others the last counts.
  const seen = new Set<string>();
  for (const each of [...named.values(), ...extraTokens]) {
    const key = JSON.stringify(propertiesOf(each));
    if (contents.has(each.content) || seen.has(key)) continue;
    seen.add(key);
    toAdd.push(each);
  }
  return {
    named,
    added: toAdd.map((each) =>
      each.special || !namedContents.has(each.content) ? each : { ...each, special: true },
    ),
    all: [...named.values(), ...extraTokens].map((each) => ({ ...each, special: true })),
  };
}

/** The settings of the configuration and `special_tokens_map.json` together. */
interface Settings {
  readonly settings: Fields;
  /** Special tokens without names. */
  readonly listed: readonly unknown[];
  /** The contents that make a token of `added_tokens.json` special: transformers looks before it reads objects of the configuration. */
  readonly specials: ReadonlySet<unknown>;
}

/** Overrides the settings by those of `special_tokens_map.json`, which old folders without a decoder contain. Its named tokens are special. */
function withMap(config: Fields, map: Fields): Settings {
  const { extra_special_tokens: extra, additional_special_tokens: additional, ...configured } = config;
  const settings: Record<string, unknown> = { ...configured };
  let rest = additional;
  let list = extra;
  if (additional !== undefined && (!extra || Object.keys(extra).length === 0)) {
    list = additional;
    rest = undefined;
  }
  const names: Record<string, unknown> = {};
  const take = () => {
    if (isRecord(list)) {
      Object.assign(names, list);
      list = undefined;
    }
  };
  take();
  const marked = new Set<unknown>();
  const mark = (value: unknown) => {
    if (!isRecord(value)) return value;
    const token = { ...value, special: true };
    marked.add(token);
    return token;
  };
  for (const [key, value] of Object.entries(map))
    if (key === "additional_special_tokens") rest = value;
    else if (key !== "extra_special_tokens") settings[key] = mark(value);
    else if (!Array.isArray(value)) list = value;
    else list = [...new Set([...(Array.isArray(list) ? (list as unknown[]) : []), ...value.map(mark)])];
  take();
  const early = [...standardNames.map((name) => settings[name]), ...(Array.isArray(list) ? list : [])];
  const specials = new Set(early.map((value) => (marked.has(value) ? (value as Fields)["content"] : value)));
  const listed = list === undefined ? rest : list;
  return {
    settings: { ...settings, extra_special_tokens: names },
    listed: Array.isArray(listed) ? (listed as unknown[]) : [],
    specials,
  };
}

/** Returns the values of named tokens in the order of transformers. */
function namesOf(settings: Fields, defaults: Readonly<Record<string, string>>): Map<string, unknown> {
  const all: Fields = { ...defaults, ...settings };
  const isToken = (value: unknown) => typeof value === "string" || (isRecord(value) && "content" in value);
  const extras = Object.keys(all).filter((name) => name.endsWith("_token") && !standardNames.includes(name));
  const named = new Map(
    [...standardNames, ...extras].filter((name) => isToken(all[name])).map((name) => [name, all[name]]),
  );
  for (const [name, value] of Object.entries(all["extra_special_tokens"] as Fields)) named.set(name, value);
  return named;
}

const propertiesOf = (each: AddedToken) => [each.content, ...propertyNames.map((name) => each[name])];

const propertyNames = ["single_word", "lstrip", "rstrip", "normalized", "special"] as const;

function readToken(value: unknown, where: string, key: string): AddedToken {
  if (typeof value === "string") return token(value);
  if (!isRecord(value) || typeof value["content"] !== "string")
    throw partError(where, [key], quoteShort(value), "a token");
  const properties = propertyNames.filter((name) => value[name] !== undefined);
  for (const name of properties)
    if (typeof value[name] !== "boolean")
      throw partError(where, [key, name], quoteShort(value[name]), "true or false");
  // Without `special`, AddedToken is not special.
  return token(value["content"], {
    special: false,
    ...Object.fromEntries(properties.map((name) => [name, value[name]])),
  });
}

function readDecoder(decoder: unknown, where: string): Map<number, AddedToken> {
  if (!isRecord(decoder))
    throw partError(where, ["added_tokens_decoder"], quoteShort(decoder), "an object of tokens by id");
  return new Map(
    Object.entries(decoder).map(([id, value]) => {
      if (!/^\d{1,8}$/.test(id) || !isRecord(value))
        throw partError(where, ["added_tokens_decoder", id], quoteShort(value), "a token by its id");
      return [Number(id), readToken(value, where, "added_tokens_decoder")];
    }),
  );
}

/** Returns the tokens of `added_tokens.json`, then those of `tokenizer.json`, by id. */
function oldTokens(
  added: Fields,
  stored: ReadonlyMap<number, AddedToken>,
  specials: ReadonlySet<unknown>,
): Map<number, AddedToken> {
  const tokens = new Map<number, AddedToken>();
  for (const [content, id] of Object.entries(added))
    if (typeof id === "number") tokens.set(id, token(content, { special: specials.has(content) }));
  for (const [id, each] of stored) tokens.set(id, each);
  return tokens;
}
