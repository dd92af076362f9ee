import { quoteShort } from "../../folder/model-error.ts";
import type { Model, Vocabulary } from "./model.ts";
import type { Part } from "./part.ts";

/** Reads a model whose words are in the vocabulary or unknown. */
export function readWordLevel(part: Part, vocabulary: Vocabulary): Model {
  const { ids } = vocabulary;
  const unknownId = unknownOf(part, ids);
  return { ...vocabulary, type: "WordLevel", encode: (word) => [ids.get(word) ?? unknownId()] };
}

/** Reads a model that takes the longest known beginning of a word, then of the rest. */
export function readWordPiece(part: Part, vocabulary: Vocabulary): Model {
  const { ids } = vocabulary;
  const unknownId = unknownOf(part, ids);
  const prefix = part.string("continuing_subword_prefix");
  const maxLength = part.integer("max_input_chars_per_word");
  const encode = (word: string): number[] => {
    const characters = [...word];
    if (characters.length > maxLength) return [unknownId()];
    const pieces: number[] = [];
    for (let start = 0; start < characters.length;) {
      let end = characters.length;
      let id: number | undefined;
      for (; end > start; end--) {
        id = ids.get((start > 0 ? prefix : "") + characters.slice(start, end).join(""));
        if (id !== undefined) break;
      }
      if (id === undefined) return [unknownId()];
      pieces.push(id);
      start = end;
    }
    return pieces;
  };
  return { ...vocabulary, type: "WordPiece", encode };
}

function unknownOf(part: Part, ids: ReadonlyMap<string, number>): () => number {
  const token = part.string("unk_token");
  return () => {
    const id = ids.get(token);
    if (id !== undefined) return id;
    throw part.error(
      "unk_token",
      `${quoteShort(token)}, which the vocabulary does not have, for a text with an unknown word`,
      "a token of the vocabulary",
    );
  };
}
