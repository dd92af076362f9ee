import { readBpe } from "./bpe.ts";
import { readVocabulary, unknownOf, type Model } from "./model.ts";
import type { Part } from "./part.ts";
import { readUnigram } from "./unigram.ts";

const models: Readonly<Record<string, (part: Part) => Model>> = {
  BPE: readBpe,
  Unigram: readUnigram,
  WordLevel: readWordLevel,
  WordPiece: readWordPiece,
};

export const readModel = (part: Part): Model =>
  part.component(models, part.fields["type"] === undefined ? typeByFields(part) : part.type);

/** Old files name no type. */
function typeByFields({ fields }: Part): string {
  if (fields["merges"] !== undefined) return "BPE";
  if (Array.isArray(fields["vocab"])) return "Unigram";
  return fields["max_input_chars_per_word"] === undefined ? "WordLevel" : "WordPiece";
}

/** Reads a model whose words are in the vocabulary or unknown. */
function readWordLevel(part: Part): Model {
  const vocabulary = readVocabulary(part);
  const { ids } = vocabulary;
  const unknownId = unknownOf(part, vocabulary, part.string("unk_token"), "word");
  return { ...vocabulary, type: "WordLevel", encode: (word) => [ids.get(word) ?? unknownId()] };
}

/** Reads a model that takes the longest known beginning of a word, then of the rest. */
function readWordPiece(part: Part): Model {
  const vocabulary = readVocabulary(part);
  const { ids } = vocabulary;
  const unknownId = unknownOf(part, vocabulary, part.string("unk_token"), "word");
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
