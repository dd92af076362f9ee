import { quoteShort } from "../../folder/model-error.ts";
import type { Model, Vocabulary } from "./model.ts";
import { PairTable } from "./pair-table.ts";
import { partError, type Part } from "./part.ts";

interface Merges {
  /** The rank of each pair of ids; pairs of a lower rank merge first. */
  readonly ranks: PairTable;
  /** The id of the merged token by rank. */
  readonly merged: Int32Array;
}

/** Reads a model of byte pair encoding. */
export function readBpe(part: Part, vocabulary: Vocabulary): Model {
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
  const bytes = optional("byte_fallback")
    ? Array.from({ length: 256 }, (_, byte) =>
        ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
      )
    : null;
  const merges = readMerges(part, ids, prefix.length);

  const unknownId = () => {
    const id = ids.get(unknown!);
    if (id === undefined)
      throw part.error(
        "unk_token",
        `${quoteShort(unknown)}, which the vocabulary does not have, for a text with an unknown character`,
        "a token of the vocabulary",
      );
    return id;
  };

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
      const fallback = bytes === null ? null : bytesOf(symbol, bytes);
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

function bytesOf(symbol: string, bytes: readonly (number | undefined)[]): number[] | null {
  const ids = Array.from(new TextEncoder().encode(symbol), (byte) => bytes[byte]);
  return ids.includes(undefined) ? null : (ids as number[]);
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
  const queue: number[] = [];
  const add = (at: number) => {
    const rank = next[at]! < length ? ranks.get(ids[at]!, ids[next[at]!]!) : -1;
    if (rank >= 0) push(queue, rank * length + at);
  };
  for (let at = 0; at < length; at++) add(at);
  while (queue.length > 0) {
    const entry = pop(queue);
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

/** Adds to a binary heap whose first number is the smallest. */
function push(heap: number[], value: number): void {
  let at = heap.length;
  heap.push(value);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent]! <= value) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = value;
}

function pop(heap: number[]): number {
  const top = heap[0]!;
  const value = heap.pop()!;
  const { length } = heap;
  if (length === 0) return top;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= length) break;
    if (child + 1 < length && heap[child + 1]! < heap[child]!) child += 1;
    if (heap[child]! >= value) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = value;
  return top;
}
