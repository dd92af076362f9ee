import type { PeriodicEvalError, ValuePath } from "@periodic-eval/core";
import { isRecord, pathText } from "@periodic-eval/core/internal";
import { modelError, quoteShort } from "../folder/model-error.ts";

export interface TokenizerConfig {
  readonly tokenizer_class?: string;
  readonly legacy?: boolean | null;
  readonly add_prefix_space?: boolean | null;
  readonly clean_up_tokenization_spaces?: boolean | null;
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[];
  readonly [key: string]: unknown;
}

/** The parts of a `tokenizer.json` that this package reads; the library reads the rest. */
export interface TokenizerJson {
  readonly model: Readonly<Record<string, unknown>>;
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

/** Far above the ids of every tokenizer. Ids index arrays, so a huge one could request all memory. */
const maxId = 1 << 24;

const modelTypes = ["BPE", "Unigram", "WordPiece", "WordLevel"];

type Fields = Readonly<Record<string, unknown>>;

/**
 * Checks the parts of a `tokenizer.json` that this package reads, and every id, because the library indexes arrays by it.
 *
 * @throws PeriodicEvalError `model`, with the place as its `path`.
 */
export function checkTokenizer(json: Fields, file: string): TokenizerJson {
  const { model, added_tokens: added = [] } = json;
  if (!isRecord(model)) throw fileError(file, ["model"], model, "an object");
  if (!Array.isArray(added)) throw fileError(file, ["added_tokens"], added, "an array");
  for (const [i, token] of (added as readonly unknown[]).entries()) {
    const at = ["added_tokens", i];
    if (!isRecord(token)) throw fileError(file, at, token, "an object");
    if (!isId(token["id"]))
      throw fileError(file, [...at, "id"], token["id"], `an integer from 0 below ${maxId}`);
    if (typeof token["content"] !== "string" || token["content"] === "")
      throw fileError(file, [...at, "content"], token["content"], "a non-empty string");
  }
  const { type, vocab, merges, unk_id: unknownId } = model;
  if (type !== undefined && !modelTypes.includes(type as string))
    throw fileError(file, ["model", "type"], type, modelTypes.join(", "));
  checkVocabulary(vocab, file);
  if (type === "BPE" || merges !== undefined) checkMerges(merges, file);
  if (unknownId != null && !(isId(unknownId) && Array.isArray(vocab) && unknownId < vocab.length))
    throw fileError(file, ["model", "unk_id"], unknownId, "an id of the vocabulary");
  return { ...json, added_tokens: added } as unknown as TokenizerJson;
}

/** Checks pairs of tokens, written as `"a b"` or `["a", "b"]`. */
function checkMerges(merges: unknown, file: string): void {
  const path = ["model", "merges"];
  if (!Array.isArray(merges)) throw fileError(file, path, merges, "an array");
  for (const [i, merge] of (merges as readonly unknown[]).entries()) {
    const parts: readonly unknown[] =
      typeof merge === "string" ? merge.split(" ") : Array.isArray(merge) ? merge : [];
    if (parts.length !== 2 || !parts.every((part) => typeof part === "string"))
      throw fileError(file, [...path, i], merge, "two tokens");
  }
}

/** Checks a vocabulary: ids by token, or an array of tokens with their scores. */
function checkVocabulary(vocab: unknown, file: string): void {
  const path = ["model", "vocab"];
  if (Array.isArray(vocab)) {
    for (const [i, entry] of (vocab as readonly unknown[]).entries()) {
      const [token, score] = Array.isArray(entry) ? (entry as readonly unknown[]) : [];
      if (typeof token !== "string" || typeof score !== "number")
        throw fileError(file, [...path, i], entry, "a token and its score");
    }
  } else if (isRecord(vocab)) {
    for (const [token, id] of Object.entries(vocab))
      if (!isId(id)) throw fileError(file, [...path, token], id, `an integer from 0 below ${maxId}`);
  } else throw fileError(file, path, vocab, "ids by token, or an array of tokens with scores");
}

export function checkConfig(json: Fields, file: string): TokenizerConfig {
  const { chat_template: template, tokenizer_class: kind } = json;
  const isNamed = (entry: unknown) =>
    isRecord(entry) && typeof entry["name"] === "string" && typeof entry["template"] === "string";
  const isTemplate =
    template == null || typeof template === "string" || (Array.isArray(template) && template.every(isNamed));
  if (!isTemplate)
    throw fileError(file, ["chat_template"], template, "a string, or an array of { name, template }");
  if (kind != null && typeof kind !== "string") throw fileError(file, ["tokenizer_class"], kind, "a string");
  return {
    ...json,
    ...("chat_template" in json && { chat_template: template ?? undefined }),
  } as TokenizerConfig;
}

/** Checks `eos_token_id` of a `generation_config.json`: an id, an array of ids, or null. */
export function checkEosIds(value: unknown, file: string): readonly number[] {
  const ids: readonly unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  if (!ids.every(isId)) throw fileError(file, ["eos_token_id"], value, `integers from 0 below ${maxId}`);
  return ids;
}

const isId = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < maxId;

function fileError(file: string, path: ValuePath, got: unknown, expected: string): PeriodicEvalError {
  return modelError({
    where: `${file}, ${pathText(path).slice(1)}`,
    path,
    got: quoteShort(got),
    expected,
    fix: "Download or write the file again: it is damaged, or it is not a tokenizer.",
  });
}
