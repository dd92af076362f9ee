/** A seeded source of numbers (mulberry32). */
export class Dice {
  constructor(private state: number) {}

  /** Returns an integer from 0 below `count`. */
  below(count: number): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let value = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) % count;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }
}

const words =
  "Hello world the The of 's 't 're 'LL don't I'm we've it'S GPT-2 x != y foo_bar HelloWorld éte naïve Straße ΣΑΣ Σ İstanbul ŉ ſ K ﬁ ﬆ Ａ ｶﾞ ½ x² ³ Ⅷ ①② ३४ ٣ 𝟙 一二 你好 中文字 日本語 カタカナ ひらがな 한국어 สวัสดี हिन्दी शक्ति русский ΟΔΟΣ שלום مرحبا ქართული ❤️ 👍🏽 👩‍👩‍👧 🇩🇪 ☕ … — “q” (a) [b] {c} <d> a/b c:d e;f 3.14 1,000 12345 007 http://a.b/c?d=e do n't can 't do not ab aab abc aa bb ba";
const pools: readonly (readonly string[])[] = [
  words.split(" "),
  [" ", " ", " ", "  ", "   ", "\n", "\r\n", "\t", "\n\n", " \n"],
  [..."\u00a0\u0085\u3000\u2003\u200b\u200c\u200d\ufeff\u1680\u180e\u2028\u2029\u202f\u205f\u000b\u000c"],
  [
    ..."\u0301\u0308\u0327\u0300\u0345\u05b0\u0e33\u093c\u1ab0\u20dd\u3099\uff9e",
    "e\u0301",
    "a\u0308\u0301",
    "q\u0307\u0323",
  ],
  [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"],
  [..."!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»¡¿§¶·€£¥+×÷≠∞"],
  [..."▁Ġ|#ĊÃ", "##", "</w>", "<0x41>", "<0xZZ>", "<unk>"],
  [
    "<s>",
    "</s>",
    "<s> ",
    " <s>",
    "[INST]",
    "<|im_start|>",
    "[MASK]",
    " [MASK] ",
    "tok",
    " tok ",
    "Tok",
    "<x>",
    "  <x>  ",
  ],
  [
    "\u0000",
    "\u0001",
    "\u0007",
    "\u001f",
    "\u007f",
    "\u0080",
    "\u009f",
    "\u00ad",
    "\u202e",
    "\ufffd",
    "\ue000",
    "\u{f0000}",
  ],
];

/** Returns texts of all scripts, spaces, marks and controls, and characters of all of Unicode; the same for each seed. */
export function fuzzTexts(count: number, seed: number): string[] {
  const dice = new Dice(seed);
  const anyCharacter = () => {
    const limit = dice.pick([0x250, 0x3000, 0x11000, 0x20000, 0x110000]);
    const code = 1 + dice.below(limit - 1);
    return code >= 0xd800 && code < 0xe000 ? "" : String.fromCodePoint(code);
  };
  const texts = ["", " ", "a", " a", "a ", "\n", "é", "  ", "▁", "<s>", "<s> a"];
  while (texts.length < count) {
    const length = 1 + dice.below(dice.pick([3, 8, 20]));
    let text = "";
    for (let i = 0; i < length; i++) {
      const kind = dice.below(pools.length + 3);
      text +=
        kind < pools.length
          ? dice.pick(pools[kind]!)
          : kind === pools.length
            ? anyCharacter()
            : dice.pick(pools[dice.below(2)]!);
    }
    texts.push(text);
  }
  return texts;
}

/** Returns lists of ids, a few of them beyond `size`. */
export function fuzzIds(count: number, size: number, seed: number): number[][] {
  const dice = new Dice(seed);
  return Array.from({ length: count }, () =>
    Array.from({ length: dice.below(12) }, () => dice.below(size + (dice.below(20) === 0 ? 40 : 0))),
  );
}
