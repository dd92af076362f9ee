/** Returns the body of a character class from code points and ranges in hexadecimal, such as `88f 1acf-1add`. */
function classOf(ranges: string): string {
  return ranges.replaceAll(/[0-9a-f]+/g, (code) => `\\u{${code}}`).replaceAll(" ", "");
}

// Unicode versions: Node 20.20's engine knows Unicode 17, Rust's `char` too, Oniguruma and regex Unicode 16, and the crates
// unicode_categories and unicode_normalization_alignments older ones. The sets below are the measured differences of
// tokenizers 0.23.3, over all code points.

/** Characters that Oniguruma and the crate regex do not know. */
const sinceUnicode17 = classOf(
  "88f c5c cdc 1acf-1add 1ae0-1aeb 20c1 2b96 a7ce-a7cf a7d2 a7d4 a7f1 fbc3-fbd2 fd90-fd91 " +
    "fdc8-fdce 10940-10959 10ec5-10ec7 10ed0-10ed8 10efa-10efb 11b60-11b67 11db0-11ddb 11de0-11de9 " +
    "16ea0-16eb8 16ebb-16ed3 16ff2-16ff6 187f8-187ff 18d09-18d1e 18d80-18df2 1ccfa-1ccfc 1ceba-1ced0 " +
    "1cee0-1cef0 1e6c0-1e6de 1e6e0-1e6f5 1e6fe-1e6ff 1f6d8 1f777-1f77a 1f8d0-1f8d8 1fa54-1fa57 1fa8a " +
    "1fa8e 1fac8 1facd 1faea 1faef 1fbfa 2b73a-2b73f 2cea2-2cead 323b0-33479",
);

/** Punctuation that unicode_categories does not know. */
const newPunctuation = classOf(
  "61d 9fd a76 c77 c84 1b4e-1b4f 1b7d-1b7f 2e43-2e4f 2e52-2e5d 10d6e 10ead 10ed0 10f55-10f59 " +
    "10f86-10f89 113d4-113d5 113d7-113d8 1144b-1144f 1145a-1145b 1145d 11660-1166c 116b9 1183b " +
    "11944-11946 119e2 11a3f-11a46 11a9a-11a9c 11a9e-11aa2 11b00-11b09 11be1 11c41-11c45 11c70-11c71 " +
    "11ef7-11ef8 11f43-11f4f 11fff 12ff1-12ff2 16d6d-16d6f 16e97-16e9a 16fe2 1e5ff 1e95e-1e95f",
);

/** Marks that unicode_normalization_alignments does not know. */
const newMarks = classOf(
  "7fd 897-89f 8ca-8d3 9fe afa-aff b55 c04 c3c cf3 d00 d3b-d3c d81 eba ece 1715 180f 1abf-1add " +
    "1ae0-1aeb 1cf7 1df6-1dfa a82c a8ff 10d24-10d27 10d69-10d6d 10eab-10eac 10efa-10eff 10f46-10f50 " +
    "10f82-10f85 11070 11073-11074 110c2 11145-11146 111c9 111ce-111cf 11241 1133b 113b8-113c0 113c2 " +
    "113c5 113c7-113ca 113cc-113d0 113d2 113e1-113e2 1145e 1182c-1183a 11930-11935 11937-11938 " +
    "1193b-1193e 11940 11942-11943 119d1-119d7 119da-119e0 119e4 11a01-11a0a 11a33-11a39 11a3b-11a3e " +
    "11a47 11a51-11a5b 11a8a-11a99 11b60-11b67 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d45 11d47 " +
    "11d8a-11d8e 11d90-11d91 11d93-11d97 11ef3-11ef6 11f00-11f01 11f03 11f34-11f3a 11f3e-11f42 11f5a " +
    "13440 13447-13455 1611e-1612f 16f4f 16f7f-16f87 16fe4 16ff0-16ff1 1cf00-1cf2d 1cf30-1cf46 1e08f " +
    "1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef 1e6e3 1e6e6 1e6ee-1e6ef 1e6f5",
);

/** Characters whose decompositions or compositions unicode_normalization_alignments does not know. */
const newCompositions = classOf(
  "32ff a7f1-a7f4 ab69 105c9 105e4 10781-10785 10787-107b0 107b2-107ba 11383 11385 1138e 11391 113c5 " +
    "113c7-113c8 11938 16121-16128 16d68-16d6a 1ccd6-1ccf9 1e030-1e06d 1f16c 1fbf0-1fbf9 105d2 105da " +
    "11382 11384 1138b 11390 113b8 113bb 113c2 113c9 11930 11935 1611e-16120 16129 16d63 16d67",
);

/** Bodies of character classes under the flag `v`, for the parts of tokenizers that are not Oniguruma's. */
export const charClass = {
  whitespace: "\\p{White_Space}",
  numeric: "\\p{N}",
  punctuation: `[\\p{P}$+<=>\\^\\x60\\x7c\\x7e\\u{166d}\\u{111c9}]--[${newPunctuation}]`,
  word: `[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]--[${sinceUnicode17}]`,
} as const;

/** Returns Oniguruma's set of a character class body of JavaScript. */
export const onigurumaSet = (body: string): string => `[[${body}]--[${sinceUnicode17}]]`;
/** Returns Oniguruma's set of characters without one of these properties, such as the unassigned. */
export const onigurumaUnassigned = (body: string): string => `[${body}${sinceUnicode17}]`;

type Form = "NFC" | "NFD" | "NFKC" | "NFKD";

const isolated = new RegExp(`([${newMarks}${newCompositions}])`, "v");
const hasIsolated = new RegExp(`[${newMarks}${newCompositions}]`, "v");
const isLatin1 = /^[\0-\xff]*$/;
const isAscii = /^[\0-\x7f]*$/;

/** Normalizes a text as unicode_normalization_alignments does: characters that it does not know are starters. */
export function normalize(text: string, form: Form): string {
  if ((form === "NFC" ? isLatin1 : isAscii).test(text)) return text;
  if (!hasIsolated.test(text)) return text.normalize(form);
  return text
    .split(isolated)
    .map((part, i) => (i % 2 === 1 ? part : part.normalize(form)))
    .join("");
}

/** Lowercases each character by itself, as Rust's `char::to_lowercase`: without the rule for a final sigma. */
export function lowercase(text: string): string {
  return text.replaceAll("Σ", "σ").toLowerCase();
}
