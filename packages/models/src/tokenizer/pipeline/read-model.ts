import { isCount, isRecord } from "@periodic-eval/contracts/options";
import { readBpe } from "./bpe.ts";
import { modelTypes, type Model, type ModelType, type Vocabulary } from "./model.ts";
import { partError, type Part } from "./part.ts";
import { readUnigram } from "./unigram.ts";
import { readWordLevel, readWordPiece } from "./word-models.ts";

export function readModel(part: Part): Model {
  const type = part.fields["type"] === undefined ? typeByFields(part) : part.type;
  switch (type as ModelType) {
    case "BPE":
      return readBpe(part, readVocabulary(part));
    case "WordPiece":
      return readWordPiece(part, readVocabulary(part));
    case "WordLevel":
      return readWordLevel(part, readVocabulary(part));
    case "Unigram":
      return readUnigram(part);
    default:
      throw part.unknownType(modelTypes);
  }
}

/** Old files name no type. */
function typeByFields({ fields }: Part): ModelType {
  if (fields["merges"] !== undefined) return "BPE";
  if (Array.isArray(fields["vocab"])) return "Unigram";
  return fields["max_input_chars_per_word"] === undefined ? "WordLevel" : "WordPiece";
}

/** Reads ids by token. */
function readVocabulary(part: Part): Vocabulary {
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
