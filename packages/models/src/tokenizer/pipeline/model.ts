import { isCount, isRecord } from "@periodic-eval/contracts/options";
import { quoteShort } from "../../folder/model-error.ts";
import { partError, type Part } from "./part.ts";

/** The tokens of a model. */
export interface Vocabulary {
  readonly ids: ReadonlyMap<string, number>;
  readonly tokens: readonly (string | undefined)[];
  /** The number of tokens, from which the ids of added tokens go on. */
  readonly size: number;
}

/** Turns the words of a pre-tokenizer into ids. */
export interface Model extends Vocabulary {
  readonly type: string;
  /** Throws an error for a word with unknown parts if the model has no token for them. */
  readonly encode: (word: string) => number[];
}

/** Reads ids by token. */
export function readVocabulary(part: Part): Vocabulary {
  const { vocab } = part.fields;
  const path = [...part.path, "vocab"];
  if (!isRecord(vocab)) throw partError(part.file, path, typeof vocab, "an object of ids by token");
  const ids = new Map<string, number>();
  const tokens: string[] = [];
  for (const token of Object.keys(vocab)) {
    const id = vocab[token];
    if (!isCount(id))
      throw partError(part.file, [...path, token], JSON.stringify(id), "an integer of 0 or more");
    ids.set(token, id);
    tokens[id] = token;
  }
  return { ids, tokens, size: ids.size };
}

/** Returns a function that returns the id of an unknown token, or throws if the vocabulary does not have it. */
export const unknownOf =
  (part: Part, { ids }: Vocabulary, token: string | null, unknown: string) =>
  (): number => {
    const id = ids.get(token!);
    if (id !== undefined) return id;
    throw part.error(
      "unk_token",
      `${quoteShort(token)}, which the vocabulary does not have, for a text with an unknown ${unknown}`,
      "a token of the vocabulary",
    );
  };

/** Returns the ids of the tokens, such as `<0x0A>`, that spell a text in bytes; null if one is missing. */
export function byteIds(text: string, ids: ReadonlyMap<string, number>): number[] | null {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) =>
    ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
  );
  return bytes.includes(undefined) ? null : (bytes as number[]);
}
