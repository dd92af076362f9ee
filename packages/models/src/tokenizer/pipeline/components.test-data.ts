import { byteLetters } from "@periodic-eval/tokenizers";
import {
  type Case,
  type Fields,
  addedToken,
  behaviors,
  byId,
  byteLevel,
  byteTokens,
  file,
  metaspace,
  named,
  precompiled,
  regex,
  replace,
  sequence,
  short,
  split,
  string,
  template,
  text,
  token,
  transparent,
} from "./component-parts.test-data.ts";
import { constructs, published } from "./expressions.test-data.ts";

const plainNormalizers = [
  ..."NFC NFD NFKC NFKD Lowercase ByteLevel".split(" ").map((type) => ({ type })),
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
];
const normalizers = [
  ...plainNormalizers,
  sequence("normalizers"),
  sequence("normalizers", { type: "NFKD" }, { type: "Lowercase" }),
  sequence("normalizers", precompiled, replace(regex(" {2,}"), " ")),
  sequence("normalizers", { type: "NFKC" }, replace(string("``"), '"')),
];

const preTokenizers = [
  ...["Whitespace", "WhitespaceSplit", "Punctuation"].map((type) => ({ type })),
  ...behaviors.map((behavior) => ({ type: "Punctuation", behavior })),
  { type: "Digits", individual_digits: true },
  { type: "Digits", individual_digits: false },
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

const postProcessors = named("post-processor", "post_processor", [
  template([token("<s>"), text]),
  template([text, token("x")]),
  template([token("x"), text, text, token("<s>")]),
  template([token("<s>")]),
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
  // Text that a match of nothing inserts before the first character has no place in the input.
  ...normalizers
    .filter((normalizer) => !short(normalizer).includes("a*"))
    .map((normalizer) => ({
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
    ...["UnicodeScripts", "CharDelimiterSplit", "FixedLength", "BertPreTokenizer"].map((type) => ({ type })),
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
      "[[:alpha:]]",
      "\\p{alpha}",
      "\\h",
      "\\A.",
      "(?#comment)b",
    ].map((source) => split(regex(source))),
  ]),
  ...named("normalizer", "normalizer", [
    { type: "Nmt" },
    { type: "BertNormalizer" },
    { type: "StripAccents" },
  ]),
  ...named("decoder", "decoder", [
    { type: "BPEDecoder" },
    { type: "CTC" },
    { type: "WordPiece", prefix: "##" },
  ]),
  { name: "WordPiece", json: file({ model: { type: "WordPiece", vocab: {}, unk_token: "[UNK]" } }) },
  { name: "BPE with dropout", json: file({ model: { ...transparent, dropout: 0.1 } }) },
  {
    name: "two templates",
    json: file({
      post_processor: sequence("processors", template([text]), template([text])),
    }),
  },
];
