/** A small `tokenizer.json` whose component is compared with tokenizers. */
export interface Case {
  readonly name: string;
  readonly json: Readonly<Record<string, unknown>>;
  /** Whether a part of the texts suffices, for one construct of many. */
  readonly isBrief?: boolean;
}

export type Fields = Readonly<Record<string, unknown>>;

export const addedToken = (id: number, content: string, properties: Fields = {}) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: false,
  ...properties,
});

export const byId = (tokens: readonly string[]): Record<string, number> =>
  Object.fromEntries(tokens.map((token, id) => [token, id]));
export const byteTokens = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
);

/** Its ids are the bytes of each part and of a `|` after it, so that they show every part and its text. */
export const transparent = {
  type: "BPE",
  vocab: byId(byteTokens),
  merges: [],
  byte_fallback: true,
  end_of_word_suffix: "|",
};

export const file = (parts: Fields): Fields => ({
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  model: transparent,
  ...parts,
});

export const named = (prefix: string, key: string, parts: readonly unknown[]): Case[] =>
  parts.map((part) => ({ name: `${prefix} ${short(part)}`, json: file({ [key]: part }) }));

export const short = (part: unknown) =>
  JSON.stringify(part)
    .replace(/^\{"type":"(\w+)",?/, "$1 {")
    .slice(0, 80);

export const sequence = (key: string, ...parts: readonly unknown[]) => ({ type: "Sequence", [key]: parts });
export const behaviors = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"];
export const split = (pattern: Fields, behavior = "Isolated", invert = false) => ({
  type: "Split",
  pattern,
  behavior,
  invert,
});
export const byteLevel = (add_prefix_space = false, use_regex = true) => ({
  type: "ByteLevel",
  add_prefix_space,
  trim_offsets: true,
  use_regex,
});
export const metaspace = (prepend_scheme: string, splits = true) => ({
  type: "Metaspace",
  replacement: "▁",
  prepend_scheme,
  split: splits,
});
export const replace = (pattern: Fields, content: string) => ({ type: "Replace", pattern, content });
export const string = (text: string) => ({ String: text });
export const regex = (text: string) => ({ Regex: text });

/** A character map with an entry for each key: a Darts trie of bytes, each of whose nodes has a block of 256 units. */
export function charsmapOf(entries: Readonly<Record<string, string>>): string {
  const encoder = new TextEncoder();
  const texts: number[] = [];
  const children: Map<number, number>[] = [new Map()];
  const values: (number | undefined)[] = [undefined];
  for (const [key, text] of Object.entries(entries)) {
    let node = 0;
    for (const byte of encoder.encode(key)) {
      let next = children[node]!.get(byte);
      if (next === undefined) {
        next = children.push(new Map()) - 1;
        children[node]!.set(byte, next);
      }
      node = next;
    }
    values[node] = texts.length;
    texts.push(...encoder.encode(text), 0);
  }
  const base = (node: number) => 256 * (node + 1);
  const units = new Uint32Array(base(children.length));
  const write = (at: number, node: number, label: number) => {
    units[at] = (((at ^ base(node)) << 10) | (values[node] === undefined ? 0 : 0x100) | label) >>> 0;
    if (values[node] !== undefined) units[base(node)] = (values[node] | 0x8000_0000) >>> 0;
  };
  write(0, 0, 0);
  for (const [node, next] of children.entries())
    for (const [byte, child] of next) write(base(node) ^ byte, child, byte);
  const bytes = new Uint8Array(4 + units.length * 4 + texts.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, units.length * 4, true);
  units.forEach((unit, i) => view.setUint32(4 + 4 * i, unit, true));
  bytes.set(texts, 4 + units.length * 4);
  return btoa(String.fromCharCode(...bytes));
}

export const charsmap = charsmapOf({
  "\t": " ",
  "\n": " ",
  "\r": " ",
  "\u3000": " ",
  "\u00a0": " ",
  "\u200b": "",
  "\u00ad": "",
  Ａ: "A",
  é: "e",
  "e\u0301": "é",
  ﬁ: "fi",
  "½": "1⁄2",
  "a\u0308": "ä",
  A: "a",
  H: "h",
  "\u0001": "",
  "①": "1",
  ｶﾞ: "ガ",
  你: "您",
});
export const precompiled = { type: "Precompiled", precompiled_charsmap: charsmap };
export const text = { Sequence: { id: "A", type_id: 0 } };
const pair = [text, { Sequence: { id: "B", type_id: 1 } }];
export const processorToken = (id: string, ...ids: readonly number[]) => ({
  id,
  ids,
  tokens: ids.map(() => id),
});
export const template = (single: readonly unknown[]) => ({
  type: "TemplateProcessing",
  single,
  pair,
  special_tokens: { "<s>": processorToken("<s>", 256), x: processorToken("x", 65, 66) },
});
export const token = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
