import { failure, shown } from "../folder/failure.ts";

export interface TokenizerConfig {
  readonly tokenizer_class?: string;
  readonly legacy?: boolean | null;
  readonly add_prefix_space?: boolean | null;
  readonly clean_up_tokenization_spaces?: boolean | null;
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[];
  readonly [key: string]: unknown;
}

/** The parts of a `tokenizer.json` that are looked at here; the library reads the rest. */
export interface TokenizerJson {
  readonly normalizer: unknown;
  readonly pre_tokenizer: unknown;
  readonly decoder: unknown;
  readonly added_tokens: readonly {
    readonly id: number;
    readonly content: string;
    readonly special: boolean;
  }[];
  readonly [key: string]: unknown;
}

/** Far above every tokenizer there is: ids are places in tables. */
const maxId = 1 << 24;

const fix = "Download or write the file again: it is damaged or no tokenizer's.";

const models = ["BPE", "Unigram", "WordPiece", "WordLevel"];

type Fields = Readonly<Record<string, unknown>>;

/** Checks what this package reads of a `tokenizer.json` itself, and the ids, of which others make tables. */
export function checkTokenizer(json: Fields, where: string): TokenizerJson {
  const { model, added_tokens: added = [] } = json;
  if (!isFields(model)) throw wrong(`${where}, model`, model, "an object");
  if (!Array.isArray(added)) throw wrong(`${where}, added_tokens`, added, "a list");
  for (const [i, token] of (added as readonly unknown[]).entries()) {
    const at = `${where}, added_tokens[${i}]`;
    if (!isFields(token)) throw wrong(at, token, "an object");
    if (!isId(token["id"])) throw wrong(`${at}.id`, token["id"], `a whole number below ${maxId}`);
    if (typeof token["content"] !== "string" || token["content"] === "")
      throw wrong(`${at}.content`, token["content"], "text");
  }
  const { type, vocab, merges, unk_id: unknownId } = model;
  if (type !== undefined && !models.includes(type as string))
    throw wrong(`${where}, model.type`, type, models.join(", "));
  checkVocabulary(vocab, `${where}, model.vocab`);
  if (type === "BPE" || merges !== undefined) checkMerges(merges, `${where}, model.merges`);
  if (unknownId != null && !(isId(unknownId) && Array.isArray(vocab) && unknownId < vocab.length))
    throw wrong(`${where}, model.unk_id`, unknownId, "an id of the vocabulary");
  return { ...json, added_tokens: added } as unknown as TokenizerJson;
}

/** Pairs of tokens, in either of the two ways that they are written. */
function checkMerges(merges: unknown, where: string): void {
  if (!Array.isArray(merges)) throw wrong(where, merges, "a list");
  for (const [i, merge] of (merges as readonly unknown[]).entries()) {
    const parts: readonly unknown[] =
      typeof merge === "string" ? merge.split(" ") : Array.isArray(merge) ? merge : [];
    if (parts.length !== 2 || !parts.every((part) => typeof part === "string"))
      throw wrong(`${where}[${i}]`, merge, "two tokens");
  }
}

/** Ids by token, or a list of tokens with their scores. */
function checkVocabulary(vocab: unknown, where: string): void {
  if (Array.isArray(vocab)) {
    for (const [i, entry] of (vocab as readonly unknown[]).entries()) {
      const [token, score] = Array.isArray(entry) ? (entry as readonly unknown[]) : [];
      if (typeof token !== "string" || typeof score !== "number")
        throw wrong(`${where}[${i}]`, entry, "a token and its score");
    }
  } else if (isFields(vocab)) {
    for (const [token, id] of Object.entries(vocab))
      if (!isId(id)) throw wrong(`${where}, ${shown(token)}`, id, `a whole number below ${maxId}`);
  } else throw wrong(where, vocab, "ids by token, or a list of tokens with scores");
}

export function checkConfig(json: Fields, where: string): TokenizerConfig {
  const { chat_template: template, tokenizer_class: kind } = json;
  const isNamed = (entry: unknown) =>
    isFields(entry) && typeof entry["name"] === "string" && typeof entry["template"] === "string";
  const isTemplate =
    template == null || typeof template === "string" || (Array.isArray(template) && template.every(isNamed));
  if (!isTemplate) throw wrong(`${where}, chat_template`, template, "text, or a list of { name, template }");
  if (kind != null && typeof kind !== "string") throw wrong(`${where}, tokenizer_class`, kind, "text");
  return {
    ...json,
    ...("chat_template" in json && { chat_template: template ?? undefined }),
  } as TokenizerConfig;
}

export function checkEosIds(value: unknown, where: string): readonly number[] {
  const ids: readonly unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  if (!ids.every(isId)) throw wrong(`${where}, eos_token_id`, value, `whole numbers below ${maxId}`);
  return ids;
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isId = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < maxId;

function wrong(where: string, got: unknown, expected: string) {
  return failure(where, shown(got), expected, fix);
}
