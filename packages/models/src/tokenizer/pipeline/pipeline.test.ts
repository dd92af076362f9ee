import { describe, expect, it } from "vitest";
import {
  addedToken,
  byId,
  byteTokens,
  charsmapOf,
  file,
  metaspace,
  split,
  string,
} from "./component-parts.test-data.ts";
import { Pipeline } from "./pipeline.ts";

// Right values: tokenizers 0.23.3, which components.parity.test.ts compares on thousands of texts.
const open = (parts: Readonly<Record<string, unknown>>, splitsSpecialTokens = false) =>
  new Pipeline(file(parts), "tokenizer.json", { added: [], splitsSpecialTokens, around: null });
/** Returns the parts that a pre-tokenizer makes, joined with `|`. */
const partsOf = (parts: Readonly<Record<string, unknown>>, text: string) => {
  const ids = open(parts).encode(text, false);
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(ids)).replace(/\|$/, "");
};
const decode = (decoder: unknown, tokens: readonly string[]) =>
  open({
    decoder,
    model: { type: "WordLevel", vocab: byId(tokens), unk_token: "" },
  }).decode([...tokens.keys()], true);

describe("splitting", () => {
  it("takes a word with accents as one", () => {
    expect(partsOf({ pre_tokenizer: { type: "Whitespace" } }, "l'été a_b")).toBe("l|'|été|a_b");
  });

  it("splits at the spaces of Unicode, U+0085 among them, and not at U+FEFF", () => {
    expect(partsOf({ pre_tokenizer: { type: "WhitespaceSplit" } }, "a\u0085b\ufeffc\u3000d")).toBe(
      "a|b\ufeffc|d",
    );
    const Strip = { type: "Strip", strip_left: true, strip_right: true };
    expect(partsOf({ normalizer: Strip }, "\u0085 \ufeffa\ufeff\u3000")).toBe("\ufeffa\ufeff");
  });

  it.each([
    ["Removed", "a|b"],
    ["Isolated", "a|-|-|b"],
    ["MergedWithPrevious", "a-|-|b"],
    ["MergedWithNext", "a|-|-b"],
    ["Contiguous", "a|--|b"],
  ])("follows the behavior %s", (behavior, parts) => {
    expect(partsOf({ pre_tokenizer: split(string("-"), behavior) }, "a--b")).toBe(parts);
    expect(partsOf({ pre_tokenizer: { type: "Punctuation", behavior } }, "a--b")).toBe(parts);
  });

  it("keeps the matches if it is inverted", () => {
    expect(partsOf({ pre_tokenizer: split(string("-"), "Removed", true) }, "a--b")).toBe("-|-");
  });

  it("removes a leading space with Removed", () => {
    const model = { type: "BPE", vocab: { a: 66, " ": 222 }, merges: [] };
    expect(open({ model, pre_tokenizer: split(string(" "), "Removed") }).encode(" a", false)).toEqual([66]);
  });
});

describe("models", () => {
  it("spells unknown characters of a unigram model in bytes", () => {
    const vocab = [["<unk>", 0], ["a", -1], ...byteTokens.map((token) => [token, -9])];
    const { encode } = bound(open({ model: { type: "Unigram", unk_id: 0, byte_fallback: true, vocab } }));
    // U+FF21 is EF BC A1.
    expect(encode("aＡ")).toEqual([1, 2 + 0xef, 2 + 0xbc, 2 + 0xa1]);
  });

  it("gives an unknown word the id of the model's unknown token", () => {
    const model = { type: "WordLevel", vocab: { a: 0, "[UNK]": 1 }, unk_token: "[UNK]" };
    expect(open({ model }).encode("b", false)).toEqual([1]);
  });

  it("names the unknown token that the vocabulary lacks", () => {
    const model = { type: "WordLevel", vocab: { a: 0 }, unk_token: "[UNK]" };
    expect(() => open({ model }).encode("b", false)).toThrow(
      'tokenizer.json, model.unk_token: got "[UNK]", which the vocabulary does not have',
    );
  });

  it("refuses dropout", () => {
    const model = { type: "BPE", vocab: {}, merges: [], dropout: 0.1 };
    expect(() => open({ model })).toThrow(
      "tokenizer.json, model.dropout: got 0.1, expected null or 0: with dropout, one text has different ids each time",
    );
  });
});

const bound = (pipeline: Pipeline) => ({ encode: (text: string) => pipeline.encode(text, false) });

describe("normalizing", () => {
  it("takes the character map of the file", () => {
    const map = (entries: Readonly<Record<string, string>>) => ({
      normalizer: { type: "Precompiled", precompiled_charsmap: charsmapOf(entries) },
    });
    // As nmt_nfkc_cf, which lowers capitals. U+200D has no entry.
    expect(partsOf(map({ A: "a", Ａ: "a" }), "AＡ\u200dB")).toBe("aa\u200dB");
    expect(partsOf(map({ "\u200d": " " }), "A\u200dB")).toBe("A B");
  });

  it("lowers a final sigma like any other", () => {
    expect(partsOf({ normalizer: { type: "Lowercase" } }, "ΟΔΟΣ")).toBe("οδοσ");
  });
});

describe("decoding", () => {
  it("keeps a leading space after Metaspace with the scheme never", () => {
    expect(decode(metaspace("never", false), ["▁a", "▁b"])).toBe(" a b");
    expect(decode(metaspace("first", false), ["▁a", "▁b"])).toBe("a b");
  });

  it("ignores ids beyond the vocabulary", () => {
    expect(open({}).decode([5000], true)).toBe("");
  });
});

it("spells special tokens like other text if they are split", () => {
  const added_tokens = [addedToken(256, "<s>", { special: true }), addedToken(257, "<x>")];
  expect(open({ added_tokens }).encode("<s><x>", false)).toEqual([256, 257]);
  expect(open({ added_tokens }, true).encode("<s><x>", false)).toEqual([60, 115, 62, 124, 257]);
});

it("ignores the ids of added tokens, which follow from their order", () => {
  const { encode } = bound(open({ added_tokens: [addedToken(300, "<s>"), addedToken(7, "<x>")] }));
  expect(encode("<x><s>")).toEqual([257, 256]);
});
