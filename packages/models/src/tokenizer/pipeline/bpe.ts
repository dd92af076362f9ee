import { quoteShort } from "../../folder/model-error.ts";
import TinyQueue from "tinyqueue";
import { byteIds, readVocabulary, unknownOf, type Model } from "./model.ts";
import { PairTable } from "./pair-table.ts";
import { partError, type Part } from "./part.ts";

interface Merges {
  /** The rank of each pair of ids; pairs of a lower rank merge first. */
  readonly ranks: PairTable;
  /** The id of the merged token by rank. */
  readonly merged: Int32Array;
}

/** Reads a model of byte pair encoding. */
export function readBpe(part: Part): Model {
  const vocabulary = readVocabulary(part);
  const { ids } = vocabulary;
  if (part.fields["dropout"] != null && part.fields["dropout"] !== 0)
    throw part.error(
      "dropout",
      quoteShort(part.fields["dropout"]),
      "null or 0: with dropout, one text has different ids each time",
      "Set it to null; it is meant for training.",
    );
  const optional = (key: string) => part.fields[key] != null && part.boolean(key);
  const prefix = part.optionalString("continuing_subword_prefix") ?? "";
  const suffix = part.optionalString("end_of_word_suffix") ?? "";
  const unknown = part.optionalString("unk_token");
  const fusesUnknown = optional("fuse_unk");
  const ignoresMerges = optional("ignore_merges");
  const usesBytes = optional("byte_fallback");
  const merges = readMerges(part, ids, prefix.length);

  const unknownId = unknownOf(part, vocabulary, unknown, "character");

  const encode = (word: string): number[] => {
    const whole = ignoresMerges ? ids.get(word) : undefined;
    if (whole !== undefined) return [whole];
    const symbols: number[] = [];
    let pending: number | null = null;
    let at = 0;
    for (const character of word) {
      const isFirst = at === 0;
      at += character.length;
      const symbol = (isFirst ? "" : prefix) + character + (at === word.length ? suffix : "");
      const id = ids.get(symbol);
      if (id !== undefined) {
        if (pending !== null) symbols.push(pending);
        pending = null;
        symbols.push(id);
        continue;
      }
      const fallback = usesBytes ? byteIds(symbol, ids) : null;
      if (fallback !== null) symbols.push(...fallback);
      else if (unknown !== null && !(pending !== null && fusesUnknown)) {
        if (pending !== null) symbols.push(pending);
        pending = unknownId();
      }
    }
    if (pending !== null) symbols.push(pending);
    return mergeAll(symbols, merges);
  };
  return { ...vocabulary, type: "BPE", encode };
}

/** Reads merges, written as `"a b"` or `["a", "b"]`. */
function readMerges(part: Part, ids: ReadonlyMap<string, number>, prefixLength: number): Merges {
  const list = part.list("merges");
  const ranks = new PairTable(list.length);
  const merged = new Int32Array(list.length);
  const fail = (i: number, expected: string) =>
    partError(part.file, [...part.path, "merges", i], quoteShort(list[i]), expected);
  for (const [i, merge] of list.entries()) {
    // Files of merges begin with their version.
    if (typeof merge === "string" && merge.startsWith("#version")) continue;
    const pair: unknown = typeof merge === "string" ? merge.split(" ") : merge;
    if (!isPair(pair)) throw fail(i, "two tokens");
    const [left, right] = pair;
    const first = ids.get(left);
    const second = ids.get(right);
    const both = ids.get(left + right.slice(prefixLength));
    if (first === undefined || second === undefined || both === undefined)
      throw fail(i, "two tokens that are in the vocabulary, as is what they merge into");
    merged[i] = both;
    ranks.set(first, second, i);
  }
  return { ranks, merged };
}

const isPair = (value: unknown): value is [string, string] =>
  Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && typeof value[1] === "string";

/** Merges neighbours in the order of their ranks, and from left to right where ranks are equal. */
function mergeAll(symbols: readonly number[], { ranks, merged }: Merges): number[] {
  const { length } = symbols;
  const ids = Int32Array.from(symbols);
  const next = Int32Array.from(symbols, (_, i) => i + 1);
  const previous = Int32Array.from(symbols, (_, i) => i - 1);
  // An entry is rank * length + position. It is out of date if the pair at its position has another rank.
  const queue = new TinyQueue<number>();
  const add = (at: number) => {
    const rank = next[at]! < length ? ranks.get(ids[at]!, ids[next[at]!]!) : -1;
    if (rank >= 0) queue.push(rank * length + at);
  };
  for (let at = 0; at < length; at++) add(at);
  for (let entry = queue.pop(); entry !== undefined; entry = queue.pop()) {
    const at = entry % length;
    const rank = (entry - at) / length;
    const right = next[at]!;
    if (ids[at]! < 0 || right >= length || ranks.get(ids[at]!, ids[right]!) !== rank) continue;
    ids[at] = merged[rank]!;
    ids[right] = -1;
    next[at] = next[right]!;
    if (next[at] < length) previous[next[at]] = at;
    if (previous[at]! >= 0) add(previous[at]!);
    add(at);
  }
  return Array.from(ids).filter((id) => id >= 0);
}
