import { quoteShort } from "../../folder/model-error.ts";
import { byteIds, type Model } from "./model.ts";
import { Trie } from "./pair-table.ts";
import { partError, type Part } from "./part.ts";

/** How much worse than the worst token an unknown character is. */
const unknownPenalty = 10;

/** Reads a unigram language model, which finds the most likely tokens of a word (Viterbi). */
export function readUnigram(part: Part): Model {
  const { tokens, scores } = readVocabulary(part);
  const ids = new Map(tokens.map((token, id) => [token, id]));
  const unknownId = part.fields["unk_id"] == null ? null : part.integer("unk_id");
  if (unknownId !== null && unknownId >= tokens.length)
    throw part.error("unk_id", String(unknownId), "an id of the vocabulary");
  const usesBytes = part.boolean("byte_fallback", false);
  const unknownScore = scores.reduce((least, score) => Math.min(least, score), Infinity) - unknownPenalty;
  const trie = new Trie(ids.size);
  for (const [token, id] of ids) if (token !== "") trie.add(token, id);

  const missing = () =>
    part.error("unk_id", "null, for a text with an unknown character", "the id of the unknown token");

  const encode = (word: string): number[] => {
    const best = new Float64Array(word.length + 1);
    const from = new Int32Array(word.length + 1).fill(-1);
    const chosen = new Int32Array(word.length + 1);
    const offer = (start: number, end: number, id: number, score: number) => {
      if (from[end] !== -1 && score <= best[end]!) return;
      best[end] = score;
      from[end] = start;
      chosen[end] = id;
    };
    for (let start = 0; start < word.length;) {
      const characterEnd = start + (word.codePointAt(start)! > 0xffff ? 2 : 1);
      const score = best[start]!;
      let isCharacterKnown = false;
      let node = 0;
      for (let end = start; end < word.length;) {
        node = trie.child(node, word.charCodeAt(end));
        if (node === -1) break;
        end += 1;
        const id = trie.ids[node]!;
        if (id === -1) continue;
        offer(start, end, id, scores[id]! + score);
        isCharacterKnown ||= end === characterEnd;
      }
      if (!isCharacterKnown) {
        if (unknownId === null) throw missing();
        offer(start, characterEnd, unknownId, unknownScore + score);
      }
      start = characterEnd;
    }
    return idsOfParts(bestParts(word, from, chosen, unknownId));
  };

  const idsOfParts = (parts: readonly string[]): number[] =>
    parts.flatMap((text) => {
      const id = ids.get(text);
      if (id !== undefined) return [id];
      const bytes = usesBytes ? byteIds(text, ids) : null;
      if (bytes !== null) return bytes;
      if (unknownId === null) throw missing();
      return [unknownId];
    });

  return { type: "Unigram", ids, tokens, size: tokens.length, encode };
}

/** Follows the best path back to the start. Unknown parts in a row are one. */
function bestParts(word: string, from: Int32Array, chosen: Int32Array, unknownId: number | null): string[] {
  const parts: string[] = [];
  let unknownEnd = -1;
  for (let end = word.length; end > 0; end = from[end]!) {
    const start = from[end]!;
    const isUnknown = chosen[end] === unknownId;
    if (isUnknown && unknownEnd !== -1) parts[parts.length - 1] = word.slice(start, unknownEnd);
    else parts.push(word.slice(start, end));
    if (!isUnknown) unknownEnd = -1;
    else if (unknownEnd === -1) unknownEnd = end;
  }
  return parts.reverse();
}

function readVocabulary(part: Part): { tokens: string[]; scores: number[] } {
  const tokens: string[] = [];
  const scores: number[] = [];
  for (const [i, entry] of part.list("vocab").entries()) {
    const [token, score] = Array.isArray(entry) ? (entry as readonly unknown[]) : [];
    if (typeof token !== "string" || typeof score !== "number")
      throw partError(part.file, [...part.path, "vocab", i], quoteShort(entry), "a token and its score");
    tokens.push(token);
    scores.push(score);
  }
  if (tokens.length === 0) throw part.error("vocab", "an empty array", "at least one token");
  return { tokens, scores };
}
