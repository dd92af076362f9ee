import { byteLetters } from "@periodic-eval/tokenizers";
import { readReplacer } from "./normalizers.ts";
import type { Part } from "./part.ts";
import { readMetaspace } from "./pre-tokenizers.ts";

/** Changes tokens into texts, whose concatenation is the decoded text. */
export type Decoder = (tokens: readonly string[]) => string[];

const decoders: Readonly<Record<string, (part: Part) => Decoder>> = {
  ByteFallback: () => decodeByteTokens,
  ByteLevel: () => (tokens) => [decodeByteLetters(tokens)],
  Fuse: () => (tokens) => [tokens.join("")],
  Metaspace(part) {
    const { replacement, scheme } = readMetaspace(part);
    return (tokens) =>
      tokens.map((token, i) => token.replaceAll(replacement, i === 0 && scheme !== "never" ? "" : " "));
  },
  Replace(part) {
    const replace = readReplacer(part);
    return (tokens) => tokens.map(replace);
  },
  Sequence(part) {
    const steps = part.parts("decoders").map(readDecoder);
    return (tokens) => steps.reduce<string[]>((current, step) => step(current), [...tokens]);
  },
  Strip: (part) => strip(part.char("content"), part.integer("start"), part.integer("stop")),
};

export function readDecoder(part: Part): Decoder {
  return part.component(decoders);
}

const byteOfUnit = new Int16Array(0x200).fill(-1);
for (const [byte, letter] of byteLetters.entries()) byteOfUnit[letter.charCodeAt(0)] = byte;
const lossy = new TextDecoder("utf-8", { ignoreBOM: true });

/** Reads GPT-2's alphabet. A token with other characters, such as an added one, stands for itself. */
function decodeByteLetters(tokens: readonly string[]): string {
  const bytes: number[] = [];
  for (const token of tokens) {
    const before = bytes.length;
    for (let i = 0; i < token.length; i++) {
      const unit = token.charCodeAt(i);
      const byte = unit < 0x200 ? byteOfUnit[unit]! : -1;
      if (byte === -1) {
        bytes.length = before;
        for (const each of new TextEncoder().encode(token)) bytes.push(each);
        break;
      }
      bytes.push(byte);
    }
  }
  return lossy.decode(Uint8Array.from(bytes));
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Joins runs of tokens such as `<0x0A>`. A run that is not UTF-8 becomes one U+FFFD for each byte. */
function decodeByteTokens(tokens: readonly string[]): string[] {
  const texts: string[] = [];
  let bytes: number[] = [];
  const flush = () => {
    if (bytes.length === 0) return;
    try {
      texts.push(strict.decode(Uint8Array.from(bytes)));
    } catch {
      for (const _ of bytes) texts.push("\uFFFD");
    }
    bytes = [];
  };
  for (const token of tokens) {
    const hex = token.startsWith("<0x") ? /^<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>$/.exec(token)?.[1] : undefined;
    if (hex !== undefined) bytes.push(Number.parseInt(hex, 16));
    else {
      flush();
      texts.push(token);
    }
  }
  flush();
  return texts;
}

function strip(content: string, start: number, stop: number): Decoder {
  return (tokens) =>
    tokens.map((token) => {
      const characters = [...token];
      let from = 0;
      while (from < start && characters[from] === content) from += 1;
      let to = characters.length;
      while (characters.length - to < stop && to > from && characters[to - 1] === content) to -= 1;
      return characters.slice(from, to).join("");
    });
}

const punctuation = [
  [" .", "."],
  [" ?", "?"],
  [" !", "!"],
  [" ,", ","],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"],
] as const;

/** Removes spaces before punctuation, as `clean_up_tokenization` of transformers. */
export const cleanUpSpaces = (text: string): string =>
  punctuation.reduce((current, [from, to]) => current.replaceAll(from, to), text);
