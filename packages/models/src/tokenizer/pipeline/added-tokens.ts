import { quoteShort } from "../../folder/model-error.ts";
import type { Normalizer } from "./normalizers.ts";
import { Trie } from "./pair-table.ts";
import { partError, type Part } from "./part.ts";
import { charClass } from "./unicode.ts";

/** A token that is found in the text before the pipeline splits it. */
export interface AddedToken {
  readonly content: string;
  /** Whether it counts only between characters that are no part of words. */
  readonly single_word: boolean;
  /** Whether it takes the whitespace before it. */
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  /** Whether it is normalized, and found in normalized texts. */
  readonly normalized: boolean;
  /** Whether decoding can leave it out. */
  readonly special: boolean;
}

/** Reads the `added_tokens` of a `tokenizer.json`. tokenizers ignores their ids: they follow from contents and order. */
export function readAddedTokens(root: Part): AddedToken[] {
  if (root.fields["added_tokens"] === undefined) return [];
  return root.parts("added_tokens").map((part) => {
    part.integer("id");
    if (part.string("content") === "") throw part.error("content", '""', "a non-empty string");
    return {
      content: part.string("content"),
      single_word: part.boolean("single_word"),
      lstrip: part.boolean("lstrip"),
      rstrip: part.boolean("rstrip"),
      normalized: part.boolean("normalized"),
      special: part.boolean("special"),
    };
  });
}

/** An added token in a text, or the text between two of them. */
export interface Segment {
  /** The added token; null for other text. */
  readonly id: number | null;
  /** With the whitespace that the token takes. */
  readonly text: string;
  readonly at: number;
}

/** Finds tokens in a text, from left to right: the leftmost first, and the longest at one place. */
type TokenFinder = (text: string) => Iterable<readonly [start: number, end: number, id: number]>;

export class AddedVocabulary {
  readonly idOf = new Map<string, number>();
  readonly tokens = new Map<number, AddedToken>();
  /** The text that decoders get for a token whose normalized form differs. */
  readonly normalizedForms = new Map<number, string>();
  private readonly specialContents = new Set<string>();
  private readonly raw: TokenFinder;
  private readonly normalized: TokenFinder;

  /**
   * @param groups Tokens that are added together: new ids follow the largest id of earlier groups.
   * @param size The number of the model's tokens.
   * @param isSpecialSplit Whether special tokens are spelled like other text, as `split_special_tokens` says.
   */
  constructor(
    groups: readonly (readonly AddedToken[])[],
    vocabulary: ReadonlyMap<string, number>,
    size: number,
    private readonly normalizer: Normalizer | null,
    private readonly isSpecialSplit: boolean,
    private readonly file: string,
  ) {
    for (const group of groups) {
      let next = size;
      for (const id of this.tokens.keys()) next = Math.max(next, id + 1);
      for (const token of group) {
        if (token.content === "") continue;
        const id = this.idOf.get(token.content) ?? vocabulary.get(token.content) ?? next;
        if (id === next) next += 1;
        this.add(token, id);
      }
    }
    const entries = [...this.tokens];
    const of = (isNormalized: boolean) => entries.filter(([, { normalized }]) => normalized === isNormalized);
    this.raw = this.finder(of(false).map(([id, { content }]) => [content, id]));
    this.normalized = this.finder(
      of(true).map(([id, { content }]) => [this.normalizedForms.get(id) ?? content, id]),
    );
  }

  private add(token: AddedToken, id: number): void {
    const { content, special, normalized } = token;
    this.idOf.set(content, id);
    this.tokens.set(id, token);
    if (special) this.specialContents.add(content);
    const form = normalized && this.normalizer !== null ? this.normalizer(content) : content;
    if (form !== content) this.normalizedForms.set(id, form);
  }

  /** Whether decoding without special tokens leaves this token out. */
  isSpecial(token: string): boolean {
    return this.specialContents.has(token);
  }

  /** Splits a text at the tokens that are not normalized. */
  splitRaw(text: string): Segment[] {
    return this.split(text, this.raw);
  }

  /** Splits a normalized text at the others. */
  splitNormalized(text: string): Segment[] {
    return this.split(text, this.normalized);
  }

  private finder(entries: readonly (readonly [string, number])[]): TokenFinder {
    const trie = new Trie(entries.length);
    for (const [content, id] of entries)
      if (content === "" || !trie.add(content, id))
        throw partError(
          this.file,
          ["added_tokens"],
          `tokens whose normalized form is ${quoteShort(content)}`,
          "a different text, not empty, for each",
          "Set `normalized` of one of the tokens to false, or remove it.",
        );
    const units = new Set(entries.map(([content]) => content.charCodeAt(0)));
    const escaped = [...units].map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`);
    const starts = new RegExp(`[${escaped.join("")}]`, "g");
    return (text) => findTokens(trie, starts, text);
  }

  private split(text: string, finder: TokenFinder): Segment[] {
    const segments: Segment[] = [];
    let covered = 0;
    for (const [matchStart, matchEnd, id] of finder(text)) {
      const token = this.tokens.get(id)!;
      if (this.isSpecialSplit && this.specialContents.has(token.content)) continue;
      if (
        token.single_word &&
        (endsWithWord.test(text.slice(Math.max(0, matchStart - 2), matchStart)) ||
          startsWithWord.test(text.slice(matchEnd, matchEnd + 2)))
      )
        continue;
      let start = matchStart;
      let end = matchEnd;
      if (token.lstrip) {
        while (start > 0 && isSpace.test(text[start - 1]!)) start -= 1;
        start = Math.max(start, covered);
      }
      if (token.rstrip) while (end < text.length && isSpace.test(text[end]!)) end += 1;
      if (covered < start) segments.push({ id: null, text: text.slice(covered, start), at: covered });
      segments.push({ id, text: text.slice(start, end), at: start });
      covered = end;
    }
    if (covered < text.length) segments.push({ id: null, text: text.slice(covered), at: covered });
    return segments;
  }
}

const startsWithWord = new RegExp(`^[${charClass.word}]`, "v");
const endsWithWord = new RegExp(`[${charClass.word}]$`, "v");
const isSpace = /\p{White_Space}/u;

/** Finds the leftmost of its texts, and the longest of those that begin there. */
function* findTokens(trie: Trie, starts: RegExp, text: string): Generator<readonly [number, number, number]> {
  starts.lastIndex = 0;
  for (let match = starts.exec(text); match !== null; match = starts.exec(text)) {
    const start = match.index;
    let id = -1;
    let end = start;
    let node = 0;
    for (let i = start; i < text.length;) {
      node = trie.child(node, text.charCodeAt(i));
      if (node === -1) break;
      i += 1;
      if (trie.ids[node] === -1) continue;
      id = trie.ids[node]!;
      end = i;
    }
    if (id === -1) continue;
    starts.lastIndex = end;
    yield [start, end, id];
    starts.lastIndex = end;
  }
}
