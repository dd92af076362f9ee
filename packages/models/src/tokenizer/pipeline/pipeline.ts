import type { SpelledText } from "@periodic-eval/tokenizers";
import { isCount, isRecord } from "@periodic-eval/contracts/options";
import { quoteShort } from "../../folder/model-error.ts";
import { AddedVocabulary, type AddedToken, readAddedTokens, type Segment } from "./added-tokens.ts";
import { readBpe } from "./bpe.ts";
import { readDecoder, type Decoder } from "./decoders.ts";
import { type Model, readVocabulary, unknownOf } from "./model.ts";
import { readNormalizer, type Normalizer } from "./normalizers.ts";
import { Part } from "./part.ts";
import { readPreTokenizer, type Piece, type PreTokenizer } from "./pre-tokenizers.ts";
import { readUnigram } from "./unigram.ts";

export interface PipelineOptions {
  /** Tokens to add to those of the file, in groups. */
  readonly added: readonly (readonly AddedToken[])[];
  /** Whether special tokens in texts are spelled like other text. */
  readonly splitsSpecialTokens: boolean;
  /** The tokens before and after a text, instead of the file's post-processor; null for that of the file. */
  readonly around: readonly (string | null)[] | null;
}

/** The pipeline of a `tokenizer.json`, with the results of tokenizers 0.23. */
export class Pipeline {
  readonly model: Model;
  readonly added: AddedVocabulary;
  readonly vocabSize: number;
  private readonly normalizer: Normalizer | null;
  private readonly preTokenizer: PreTokenizer | null;
  private readonly postProcessor: PostProcessor | null;
  private readonly decoder: Decoder | null;
  /** Whether pieces depend on the first character of the text, as the scheme `first` of Metaspace does. */
  private readonly usesStart: boolean;
  /** Whether the normalizer has the character map of a SentencePiece model. */
  private readonly hasMap: boolean;
  private readonly words = new Map<string, readonly number[]>();

  /** @throws PeriodicEvalError `model`, with the place in the file, for what is wrong or not supported. */
  constructor(json: unknown, file: string, { added, splitsSpecialTokens, around }: PipelineOptions) {
    const root = new Part(file, [], json);
    const read = <T>(key: string, reader: (part: Part) => T): T | null => {
      const part = root.optionalPart(key);
      return part === null ? null : reader(part);
    };
    if (root.fields["version"] !== undefined && root.string("version") !== "1.0")
      throw root.error("version", JSON.stringify(root.fields["version"]), "1.0");
    this.normalizer = read("normalizer", readNormalizer);
    this.preTokenizer = read("pre_tokenizer", readPreTokenizer);
    this.usesStart = JSON.stringify(root.fields["pre_tokenizer"] ?? null).includes('"first"');
    this.hasMap = JSON.stringify(root.fields["normalizer"] ?? null).includes('"Precompiled"');
    this.postProcessor = read("post_processor", readPostProcessor);
    this.decoder = read("decoder", readDecoder);
    this.model = readModel(root.part("model"));
    const groups = [readAddedTokens(root), ...added];
    const { ids, size } = this.model;
    this.added = new AddedVocabulary(groups, ids, size, this.normalizer, splitsSpecialTokens, file);
    if (around !== null) this.postProcessor = this.surround(around);
    this.vocabSize = this.model.tokens.length;
    for (const id of this.added.tokens.keys()) this.vocabSize = Math.max(this.vocabSize, id + 1);
  }

  private surround([first = null, last = null]: readonly (string | null)[]): PostProcessor {
    const before = first === null ? [] : [this.idOf(first)!];
    const after = last === null ? [] : [this.idOf(last)!];
    return (ids, adds) => (adds ? [...before, ...ids, ...after] : ids);
  }

  encode(text: string, addsSpecialTokens: boolean): number[] {
    const ids: number[] = [];
    for (const segment of this.added.splitRaw(text)) {
      if (segment.id !== null) ids.push(segment.id);
      else this.encodeSegment(segment.text, segment.at === 0, ids);
    }
    return [...(this.postProcessor?.(ids, addsSpecialTokens) ?? ids)];
  }

  /** Adds the ids of a text without raw added tokens. */
  private encodeSegment(raw: string, isFirst: boolean, ids: number[]): void {
    const text = this.normalizer?.(raw) ?? raw;
    const hasStart = isFirst && this.usesStart && this.keepsStart(raw, text);
    for (const segment of this.added.splitNormalized(text)) {
      if (segment.id !== null) ids.push(segment.id);
      else this.encodePieces({ text: segment.text, isFirst: hasStart && segment.at === 0 }, ids);
    }
  }

  /** Returns the text that the tokens of `encode` spell. */
  spell(text: string): Omit<SpelledText, "isByteLevel"> {
    const sources: { readonly segment: Segment; readonly at: number; readonly spelled: string }[] = [];
    const segments: Segment[] = [];
    let whole = "";
    for (const segment of this.added.splitRaw(text)) {
      const at = whole.length;
      const isToken = segment.id !== null;
      const spelled = isToken ? segment.text : (this.normalizer?.(segment.text) ?? segment.text);
      const inside = isToken ? [{ ...segment, at: 0 }] : this.added.splitNormalized(spelled);
      segments.push(...inside.map((each) => ({ ...each, at: at + each.at })));
      sources.push({ segment, at, spelled });
      whole += spelled;
    }
    return {
      text: whole,
      segments,
      positionOf: (position) => {
        const source = sources.find(({ segment }) => position < segment.at + segment.text.length);
        if (source === undefined) return whole.length;
        const { segment, at } = source;
        const before = segment.text.slice(0, Math.max(0, position - segment.at));
        return at + (segment.id === null ? this.normalizedLength(before) : before.length);
      },
    };
  }

  /** Returns the length of the beginning of a text once it is normalized. */
  private normalizedLength(beginning: string): number {
    if (this.normalizer === null || beginning === "") return beginning.length;
    // With a character after it, a normalizer that strips whitespace leaves that at the end of the beginning.
    const marked = this.normalizer(beginning + mark);
    return marked.endsWith(mark) ? marked.length - mark.length : this.normalizer(beginning).length;
  }

  /** Whether the normalized text begins with what the first character became, not with what follows it. */
  private keepsStart(raw: string, normalized: string): boolean {
    if (this.normalizer === null) return true;
    const first = String.fromCodePoint(raw.codePointAt(0)!);
    const isKept = !this.normalizer(raw.slice(first.length)).endsWith(normalized);
    // A character that a map removes counts as the start of the text after it, and one that is stripped does not.
    return isKept || (this.hasMap && this.normalizer(first) === "" && first.trim() !== "");
  }

  private encodePieces(piece: Piece, ids: number[]): void {
    for (const { text } of this.preTokenizer?.([piece]) ?? [piece]) {
      let word = this.words.get(text);
      if (word === undefined) {
        word = this.model.encode(text);
        if (text.length <= longestCachedWord) {
          if (this.words.size >= maxCachedWords) this.words.clear();
          this.words.set(text, word);
        }
      }
      for (const id of word) ids.push(id);
    }
  }

  decode(ids: readonly number[], withSpecialTokens: boolean): string {
    const tokens: string[] = [];
    for (const id of ids) {
      const token = this.decodedToken(id);
      if (token !== undefined && (withSpecialTokens || !this.added.isSpecial(token))) tokens.push(token);
    }
    return this.decoder === null ? tokens.join(" ") : this.decoder(tokens).join("");
  }

  private decodedToken(id: number): string | undefined {
    return this.added.normalizedForms.get(id) ?? this.tokenOf(id);
  }

  tokenOf(id: number): string | undefined {
    return this.added.tokens.get(id)?.content ?? this.model.tokens[id];
  }

  idOf(token: string): number | undefined {
    return this.added.idOf.get(token) ?? this.model.ids.get(token);
  }
}

/** A noncharacter of Unicode, which no normalizer changes or joins to other characters. */
const mark = "\uFDD7";

const maxCachedWords = 20_000;
const longestCachedWord = 100;

const models: Readonly<Record<string, (part: Part) => Model>> = {
  BPE: readBpe,
  Unigram: readUnigram,
  WordLevel: readWordLevel,
};

const readModel = (part: Part): Model =>
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

/** Adds the tokens around a text. Without special tokens, a template still decides how often the text occurs. */
type PostProcessor = (ids: readonly number[], addsSpecialTokens: boolean) => readonly number[];

const postProcessors: Readonly<Record<string, (part: Part) => PostProcessor>> = {
  ByteLevel: () => (ids) => ids,
  Sequence(part) {
    const parts = part.parts("processors");
    const steps = parts.map(readPostProcessor);
    const templates = parts.filter(({ type }) => type === "TemplateProcessing" || type === "Sequence");
    if (templates.length > 1)
      throw part.error(
        "processors",
        `${parts.map(({ type }) => type).join(", ")}`,
        "at most one post-processor that adds tokens",
        "Merge the templates into one.",
      );
    return (ids, adds) => steps.reduce((current, step) => step(current, adds), ids);
  },
  TemplateProcessing: template,
};

function readPostProcessor(part: Part): PostProcessor {
  return part.component(postProcessors);
}

function template(part: Part): PostProcessor {
  const tokens = part.part("special_tokens");
  part.list("pair");
  const pieces = part.parts("single").map((piece): readonly number[] | "text" => {
    if (isRecord(piece.fields["Sequence"])) {
      if (piece.part("Sequence").choice("id", ["A", "B"]) === "A") return "text";
      throw piece.error("Sequence", "the sequence B", "the sequence A, in the template of one text");
    }
    const id = piece.part("SpecialToken").string("id");
    if (!Object.hasOwn(tokens.fields, id))
      throw piece.error("SpecialToken", quoteShort(id), `a key of special_tokens`);
    return tokens
      .part(id)
      .list("ids")
      .map((value) => {
        if (!isCount(value)) throw tokens.error(id, quoteShort(value), "integers from 0");
        return value;
      });
  });
  return (ids, adds) => pieces.flatMap((piece) => (piece === "text" ? ids : adds ? piece : []));
}
