import { byteLetters } from "@periodic-eval/core/internal";

/** A small `tokenizer.json` whose component is compared with tokenizers. */
export interface Case {
  readonly name: string;
  readonly json: Readonly<Record<string, unknown>>;
  /** Whether a part of the texts suffices, for one construct of many. */
  readonly isBrief?: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

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

const byId = (tokens: readonly string[]): Record<string, number> =>
  Object.fromEntries(tokens.map((token, id) => [token, id]));
const byteTokens = Array.from(
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

const file = (parts: Fields): Fields => ({
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

const named = (prefix: string, key: string, parts: readonly unknown[]): Case[] =>
  parts.map((part) => ({ name: `${prefix} ${short(part)}`, json: file({ [key]: part }) }));

const short = (part: unknown) =>
  JSON.stringify(part)
    .replace(/^\{"type":"(\w+)",?/, "$1 {")
    .slice(0, 80);

const sequence = (key: string, ...parts: readonly unknown[]) => ({ type: "Sequence", [key]: parts });
const behaviors = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"];
const split = (pattern: Fields, behavior = "Isolated", invert = false) => ({
  type: "Split",
  pattern,
  behavior,
  invert,
});
const byteLevel = (add_prefix_space = false, use_regex = true) => ({
  type: "ByteLevel",
  add_prefix_space,
  trim_offsets: true,
  use_regex,
});
const metaspace = (prepend_scheme: string, splits = true) => ({
  type: "Metaspace",
  replacement: "▁",
  prepend_scheme,
  split: splits,
});
const replace = (pattern: Fields, content: string) => ({ type: "Replace", pattern, content });
const string = (text: string) => ({ String: text });
const regex = (text: string) => ({ Regex: text });

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
const precompiled = { type: "Precompiled", precompiled_charsmap: charsmap };
const bert = (
  clean_text: boolean,
  handle_chinese_chars: boolean,
  strip_accents: boolean | null,
  lowercase: boolean,
) => ({
  type: "BertNormalizer",
  clean_text,
  handle_chinese_chars,
  strip_accents,
  lowercase,
});

const plainNormalizers = [
  ..."NFC NFD NFKC NFKD Lowercase StripAccents Nmt ByteLevel".split(" ").map((type) => ({ type })),
  { type: "Strip", strip_left: true, strip_right: true },
  { type: "Strip", strip_left: true, strip_right: false },
  { type: "Strip", strip_left: false, strip_right: true },
  { type: "Prepend", prepend: "▁" },
  { type: "Prepend", prepend: "" },
  { type: "Prepend", prepend: "ab" },
  replace(string(" "), "▁"),
  replace(string("ab"), ""),
  replace(string(""), "-"),
  replace(string("a"), "$&$1"),
  replace(regex("\\s+"), " "),
  replace(regex(" {2,}"), " "),
  replace(regex("a*"), "-"),
  replace(regex("(?<=a)b?"), "_"),
  replace(regex("[\\p{P}\\-]"), "."),
  precompiled,
  bert(true, true, null, true),
  bert(false, false, true, false),
  bert(true, false, false, true),
  bert(false, true, false, false),
  bert(true, true, null, false),
];
const normalizers = [
  ...plainNormalizers,
  sequence("normalizers"),
  sequence("normalizers", { type: "NFD" }, { type: "StripAccents" }),
  sequence("normalizers", { type: "NFKD" }, { type: "StripAccents" }, { type: "Lowercase" }),
  sequence("normalizers", precompiled, replace(regex(" {2,}"), " ")),
  sequence("normalizers", { type: "Nmt" }, { type: "NFKC" }, replace(string("``"), '"')),
];

/** Expressions of published tokenizers: GPT-2, Llama 3, Qwen, GPT-4o, Qwen 3.5, DeepSeek, StarCoder, CLIP, Granite. */
const published = [
  String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_${"`"}{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`[一-龥぀-ゟ゠-ヿ]+`,
  String.raw`\p{N}{1,3}`,
  String.raw`\d+`,
  String.raw`<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`,
  String.raw` ?[^(\s|[.,!?…。，、।۔،])]+`,
  String.raw`(?:\r?\n)+(?!\r?\n)`,
];

/** One construct of Oniguruma each. */
const constructs = [
  "a",
  "a|ab",
  "(ab|a)(c|bcd)?",
  "(?<name>a)b?",
  "(?#comment)b",
  "[a-c]+",
  "[^a-c]+",
  "[a-z&&[^aeiou]]+",
  "[[a-c][x-z]]+",
  "[a\\-z]",
  "[-a]",
  "[\\w&&[^\\d]]+",
  "\\w+",
  "\\W+",
  "\\d",
  "\\D+",
  "\\s",
  "\\S+",
  "\\h+",
  "\\H+",
  "\\bo|\\ba",
  "\\Ba",
  "\\b",
  "\\A.",
  ".\\z",
  ".\\Z",
  "^.",
  ".$",
  "^",
  "$",
  ".+",
  "(?m:.+)",
  "(?m).+",
  "(?i:hello)",
  "(?i)WORLD",
  "(?i:[a-d]+)",
  "(?i:[sk])",
  "(?i:k)",
  "(?i:a(?-i:b))",
  "a++b",
  "a*+",
  "(?>a|ab)c",
  "[^\\s]++",
  "a+?",
  "a{2}",
  "a{1,2}?b",
  "a{,2}b",
  "a{2}?",
  "a{2,}",
  "a{1,2}+b",
  "a{x",
  "x??y?",
  "(?=a)",
  "(?<=a)b",
  "(?<!a)b",
  "(?<=a|bb)c",
  "a(?!b)",
  "\\p{L}+",
  "\\P{L}+",
  "\\p{^L}+",
  "\\p{Lu}\\p{Ll}*",
  "\\p{Lo}",
  "\\p{Lt}|\\p{Lm}",
  "\\p{M}",
  "\\p{Mn}",
  "\\p{N}",
  "\\p{Nd}|\\p{No}",
  "\\p{P}",
  "\\p{S}",
  "\\p{Sc}|\\p{Sm}",
  "\\p{Z}",
  "\\p{C}",
  "\\p{Cc}",
  "\\p{Cn}",
  "\\p{Letter}",
  "\\p{Punctuation}",
  "\\p{alpha}",
  "\\p{Alphabetic}",
  "\\p{Han}",
  "\\p{Hiragana}+",
  "\\p{Cyrillic}",
  "\\p{Greek}+",
  "\\p{white_space}",
  "\\p{upper}",
  "\\p{Uppercase}+",
  "[[:alpha:]]+",
  "[[:^alpha:]]",
  "[[:punct:]]",
  "[[:space:]]",
  "[[:blank:]]",
  "[[:cntrl:]]",
  "[[:digit:]]",
  "[[:graph:]]+",
  "[[:print:]]+",
  "[[:lower:]]+",
  "[[:upper:]]",
  "[[:xdigit:]]",
  "[[:word:]]",
  "[[:alnum:]]",
  "[[:ascii:]]+",
  "\\t|\\n|\\r|\\f|\\v",
  "\\a|\\e",
  "\\x41",
  "\\x{e9}",
  "\\u00e9",
  "\\.|\\-|\\\\|\\/",
  "[\\]\\[]",
  "[.$]",
  "a|",
  "]",
  "}",
  "😀|👍",
  "[😀-🙏]",
  "",
];

const preTokenizers = [
  ...["Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Punctuation"].map((type) => ({ type })),
  ...behaviors.map((behavior) => ({ type: "Punctuation", behavior })),
  { type: "Digits", individual_digits: true },
  { type: "Digits", individual_digits: false },
  { type: "CharDelimiterSplit", delimiter: "-" },
  { type: "CharDelimiterSplit", delimiter: "👍" },
  { type: "FixedLength", length: 3 },
  { type: "FixedLength" },
  byteLevel(false, true),
  byteLevel(true, true),
  byteLevel(true, false),
  { type: "ByteLevel", add_prefix_space: false, trim_offsets: false },
  ...["always", "first", "never"].flatMap((scheme) => [metaspace(scheme), metaspace(scheme, false)]),
  { type: "Metaspace", replacement: "▁" },
  { type: "Metaspace", replacement: "_", add_prefix_space: true },
  { type: "Metaspace", replacement: "👍", prepend_scheme: "first", split: true },
  ...behaviors.flatMap((behavior) =>
    [string(" "), regex("\\s+"), regex("[ab]"), regex("b*"), string("")].flatMap((pattern) => [
      split(pattern, behavior),
      split(pattern, behavior, true),
    ]),
  ),
  ...published.map((source) => split(regex(source))),
  split(regex(published[9]!), "Removed", true),
  split(regex(published[10]!), "Isolated"),
  sequence("pretokenizers"),
  sequence("pretokenizers", { type: "WhitespaceSplit" }, metaspace("first", false)),
  sequence("pretokenizers", { type: "WhitespaceSplit" }, metaspace("always")),
  sequence("pretokenizers", metaspace("first"), { type: "Digits", individual_digits: true }),
  sequence("pretokenizers", { type: "Digits", individual_digits: true }, byteLevel()),
  sequence("pretokenizers", { type: "Punctuation", behavior: "Contiguous" }, byteLevel(), {
    type: "Digits",
    individual_digits: false,
  }),
  sequence("pretokenizers", byteLevel(), split(regex("Ġ"), "MergedWithNext")),
  sequence(
    "pretokenizers",
    split(regex(published[7]!)),
    split(regex(published[6]!)),
    split(regex(published[5]!)),
    byteLevel(false, false),
  ),
];

const special = { special: true };
const markers = [
  addedToken(256, "<s>", special),
  addedToken(257, "</s>", special),
  addedToken(258, "[MASK]", { ...special, lstrip: true }),
];
const ofProperties = (properties: Fields) => [
  addedToken(256, "<s>", { ...special, ...properties }),
  addedToken(257, "tok", properties),
  addedToken(258, "<x>", properties),
  addedToken(259, "aab", properties),
  addedToken(260, "aa", properties),
  addedToken(261, " ", {}),
];
const addedTokens: Case[] = [
  ["none", {}],
  ["single_word", { single_word: true }],
  ["lstrip", { lstrip: true }],
  ["rstrip", { rstrip: true }],
  ["lstrip and rstrip", { lstrip: true, rstrip: true }],
  ["normalized", { normalized: true }],
  ["normalized and rstrip", { normalized: true, rstrip: true }],
  ["all", { normalized: true, rstrip: true, lstrip: true, single_word: true }],
].flatMap(([label, properties]) =>
  [null, { type: "Lowercase" }, { type: "Prepend", prepend: "▁" }, replace(string(" "), "▁")].map(
    (normalizer) => ({
      name: `added tokens ${label as string}, ${JSON.stringify(normalizer)}`,
      json: file({
        normalizer,
        added_tokens: ofProperties(properties as Fields),
        pre_tokenizer: metaspace("first"),
      }),
    }),
  ),
);

const text = { Sequence: { id: "A", type_id: 0 } };
const pair = [text, { Sequence: { id: "B", type_id: 1 } }];
const processorToken = (id: string, ...ids: readonly number[]) => ({ id, ids, tokens: ids.map(() => id) });
const template = (single: readonly unknown[]) => ({
  type: "TemplateProcessing",
  single,
  pair,
  special_tokens: { "<s>": processorToken("<s>", 256), x: processorToken("x", 65, 66) },
});
const token = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
const postProcessors = named("post-processor", "post_processor", [
  template([token("<s>"), text]),
  template([text, token("x")]),
  template([token("x"), text, text, token("<s>")]),
  template([token("<s>")]),
  { type: "BertProcessing", sep: ["</s>", 257], cls: ["<s>", 256] },
  {
    type: "RobertaProcessing",
    sep: ["</s>", 257],
    cls: ["<s>", 256],
    trim_offsets: true,
    add_prefix_space: true,
  },
  byteLevel(),
  sequence("processors", byteLevel(), template([token("<s>"), text])),
]).map(({ name, json }) => ({ name, json: { ...json, added_tokens: markers } }));

const decoderTokens = [
  ...byteTokens,
  ...byteLetters,
  ..."a b ab ▁ ▁a ▁▁ a▁b ##a ## b## </w> a</w> a</w>b Ġ Ġa <pad> | a|b . ! ? , ' n't 'm 's 've 're do not ¿ é 👍 x-x <0x4> <0x+F> <0xgg> <0xe9>".split(
    " ",
  ),
  " ",
  " .",
  " do not",
  " ' ",
  "",
  "a b",
];
const decoders = named("decoder", "decoder", [
  null,
  byteLevel(),
  ...["ByteFallback", "Fuse"].map((type) => ({ type })),
  metaspace("always"),
  metaspace("first", false),
  metaspace("never"),
  { type: "WordPiece", prefix: "##", cleanup: true },
  { type: "WordPiece", prefix: "##", cleanup: false },
  { type: "BPEDecoder", suffix: "</w>" },
  { type: "CTC", pad_token: "<pad>", word_delimiter_token: "|", cleanup: true },
  { type: "CTC", pad_token: "<pad>", word_delimiter_token: "|", cleanup: false },
  { type: "Strip", content: "▁", start: 1, stop: 0 },
  { type: "Strip", content: "a", start: 2, stop: 0 },
  replace(string("▁"), " "),
  replace(regex("a+"), "<$&>"),
  sequence(
    "decoders",
    replace(string("▁"), " "),
    { type: "ByteFallback" },
    { type: "Fuse" },
    { type: "Strip", content: " ", start: 1, stop: 0 },
  ),
  sequence("decoders", { type: "ByteFallback" }, metaspace("always")),
]).map(({ name, json }) => ({
  name,
  json: {
    ...json,
    model: { type: "WordLevel", vocab: byId([...new Set(decoderTokens)]), unk_token: "a" },
    added_tokens: [
      addedToken(0, "<s>", special),
      addedToken(1, "</s>", { ...special, normalized: true }),
      addedToken(2, "é"),
    ],
  },
}));

export const componentCases: readonly Case[] = [
  ...named("normalizer", "normalizer", normalizers),
  ...named("pre-tokenizer", "pre_tokenizer", preTokenizers),
  ...constructs.map((source) => ({
    name: `regular expression ${source}`,
    isBrief: true,
    json: file({ pre_tokenizer: split(regex(source)) }),
  })),
  ...normalizers.map((normalizer) => ({
    name: `Metaspace first after ${short(normalizer)}`,
    isBrief: true,
    json: file({ normalizer, pre_tokenizer: metaspace("first"), added_tokens: markers }),
  })),
  ...addedTokens,
  ...postProcessors,
  ...decoders,
];

/** Components and options that this library refuses by name. */
export const refusedCases: readonly Case[] = [
  ...named("pre-tokenizer", "pre_tokenizer", [
    { type: "UnicodeScripts" },
    ...[
      "a**",
      "(a*)*",
      "(a)\\1",
      "\\R",
      "\\X",
      "a\\Kb",
      "\\G",
      "(?i:\\p{L})",
      "(?i:ss)",
      "(?i:é)",
      "(?i:[^a])",
      "\\p{InGreek}",
      "\\N",
      "\\k<x>",
      "(?~ab)",
      "\\C-a",
      "\\xe9",
      "(?x: a b )",
      "a(?i)b|c",
    ].map((source) => split(regex(source))),
  ]),
  { name: "BPE with dropout", json: file({ model: { ...transparent, dropout: 0.1 } }) },
  {
    name: "two templates",
    json: file({
      post_processor: sequence("processors", template([text]), template([text])),
    }),
  },
];

export {
  byId,
  byteLevel,
  byteTokens,
  file,
  metaspace,
  precompiled,
  regex,
  replace,
  sequence,
  split,
  string,
  template,
  text,
  token,
  published,
};
