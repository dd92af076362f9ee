import path from "node:path";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { pythonRandom, type PythonRandom } from "@periodic-eval/core/random";
import { isUpper } from "./pattern.ts";

const seed = 0;
const trials = 7;
const mostCharacters = 10_000;
const mostDraws = 1000;
const converged = 0.99999;
const leastProbability = 0.1;

/**
 * Detects the language of a text like langdetect 1.0.9 (a port of Cybozu Labs' language-detection). Returns a code (`en`,
 * `zh-cn`), "unknown" if no probability exceeds 0.1, or null if the text has no letters that distinguish languages. The method
 * is naive Bayes over randomly drawn n-grams, in the order that langdetect draws with `DetectorFactory.seed = 0`; without that
 * seed, langdetect's answers for short texts differ between runs. Words in capitals count by their first letter only, so
 * texts in capitals are often detected as German. Deviation: the profile of Korean is smaller, and Catalan and Welsh have none
 * (`languageProfiles`).
 */
export function detectLanguage(text: string): string | null {
  const { languages } = languageProfiles();
  const grams = gramsOf(withoutForeignLatin(cleaned(text)));
  if (grams.length === 0) return null;
  const random = pythonRandom(seed);
  const gauss = gaussian(random);
  // Python's `random.choice`.
  const draw = () => grams[random.sample(grams.length, 1)[0]!]!;
  const mean = new Float64Array(languages.length);
  for (let trial = 0; trial < trials; trial++) {
    const alpha = 0.5 + gauss() * 0.05;
    const probabilities = converge(draw, alpha, languages.length);
    probabilities.forEach((probability, at) => (mean[at]! += probability / trials));
  }
  const best = mean.indexOf(Math.max(...mean));
  return mean[best]! > leastProbability ? languages[best]! : "unknown";
}

/** Removes addresses, composes Vietnamese letters, and collapses spaces. */
function cleaned(text: string): string {
  const composed = text
    .replace(/https?:\/\/[-\w.~/?#&=+;]{1,2076}/gu, " ")
    .replace(/[-.\w]{1,64}@[-\w]{1,255}[-.\w]{1,255}/gu, " ")
    .replace(/[AEIOUYaeiouyÂÊÔâêôĂăƠơƯư][\u0300\u0301\u0303\u0309\u0323]/gu, (pair) => pair.normalize("NFC"));
  return [...composed].slice(0, mostCharacters).join("").replace(/ {2,}/gu, " ");
}

/** Removes Latin letters from text that is mostly in another script. */
function withoutForeignLatin(text: string): string {
  const latin = text.match(/[A-z]/gu)?.length ?? 0;
  const other = text.match(/[\u0300-\u{10ffff}]/gu)?.length ?? 0;
  return latin * 2 < other ? text.replace(/[A-z]/gu, "") : text;
}

/** Returns the known n-grams of a text, in order, with a space before each word; of words in capitals only their beginning. */
function gramsOf(text: string): Gram[] {
  const { grams } = languageProfiles();
  const result: Gram[] = [];
  let tail = [" "];
  for (const char of text) {
    const character = ofClass(char);
    const last = tail.at(-1)!;
    if (last === " " && character === " ") continue;
    tail = last === " " ? [" ", character] : [...tail.slice(-2), character];
    if (isUpper(last) && isUpper(character)) continue;
    for (let length = 1; length <= tail.length; length++) {
      const characters = tail.slice(-length).join("");
      const known = characters === " " ? undefined : grams.get(characters);
      if (known !== undefined) result.push(known);
    }
  }
  return result;
}

/** Normalizes a character for n-grams: marks become spaces, and letters that only identify a script become one letter per script. */
function ofClass(character: string): string {
  const code = character.codePointAt(0)!;
  if (code < 0x80) return /[A-Za-z]/u.test(character) ? character : " ";
  if (/[\u00a0\u00ab\u00b0\u00bb\u2000-\u206f]/u.test(character)) return " ";
  if (code === 0x219) return "\u015f";
  if (code === 0x21b) return "\u0163";
  if (code === 0x6cc) return "\u064a";
  if (code >= 0x1ea0 && code <= 0x1eff) return "\u1ec3";
  if (code >= 0x3040 && code <= 0x309f) return "\u3042";
  if (code >= 0x30a0 && code <= 0x30ff) return "\u30a2";
  if ((code >= 0x3100 && code <= 0x312f) || (code >= 0x31a0 && code <= 0x31bf)) return "\u3105";
  if (code >= 0x4e00 && code <= 0x9fff) return languageProfiles().ideographs.get(character) ?? character;
  if (code >= 0xac00 && code <= 0xd7af) return "\uac00";
  return character;
}

function converge(draw: () => Gram, alpha: number, languages: number): Float64Array {
  const probabilities = new Float64Array(languages).fill(1 / languages);
  const smoothed = new Float64Array(languages);
  for (let drawn = 0; ; drawn++) {
    const gram = draw();
    smoothed.fill(alpha / 10_000);
    for (let at = 0; at < gram.length; at += 2) smoothed[gram[at]!]! += gram[at + 1]!;
    for (let at = 0; at < languages; at++) probabilities[at]! *= smoothed[at]!;
    if (drawn % 5 === 0 && (normalize(probabilities) > converged || drawn >= mostDraws)) return probabilities;
  }
}

/** Normalizes in place and returns the greatest probability. */
function normalize(probabilities: Float64Array): number {
  const sum = probabilities.reduce((total, probability) => total + probability, 0);
  let greatest = 0;
  for (let at = 0; at < probabilities.length; at++) {
    probabilities[at]! /= sum;
    greatest = Math.max(greatest, probabilities[at]!);
  }
  return greatest;
}

/** Implements Python's `random.gauss(0, 1)`: Box–Muller pairs. */
function gaussian({ getrandbits }: PythonRandom): () => number {
  const uniform = () => ((getrandbits(32) >>> 5) * 2 ** 26 + (getrandbits(32) >>> 6)) / 2 ** 53;
  let second: number | null = null;
  return () => {
    if (second !== null) {
      const value = second;
      second = null;
      return value;
    }
    const angle = uniform() * 2 * Math.PI;
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
    second = Math.sin(angle) * radius;
    return Math.cos(angle) * radius;
  };
}

/** Alternates a language (its index in `languages`) and the n-gram's probability among those of its length in that language. */
type Gram = readonly number[];

interface LanguageProfiles {
  /** Sorted ISO 639-1 codes, with Chinese as `zh-cn` and `zh-tw`. */
  readonly languages: readonly string[];
  /** N-grams of one to three characters that occur in some language. */
  readonly grams: ReadonlyMap<string, Gram>;
  /** Chinese characters that the profiles do not distinguish, mapped to their representative. */
  readonly ideographs: ReadonlyMap<string, string>;
}

interface Profile {
  readonly freq: Readonly<Record<string, number>>;
  /** The total counts of n-grams of one, two and three characters. */
  readonly n_words: readonly number[];
}

let read: LanguageProfiles | null = null;

/**
 * Returns the profiles of 53 languages, which the build copies from the package `langdetect`. The first call reads them; they
 * take about 15 MB.
 */
export function languageProfiles(): LanguageProfiles {
  // The same path leads there from `src` and from `dist`.
  read ??= readProfiles(fileURLToPath(new URL("../../../languages", import.meta.url)));
  return read;
}

function readProfiles(folder: string): LanguageProfiles {
  const json = (...names: string[]) =>
    JSON.parse(readFileSync(path.join(folder, ...names), "utf8")) as unknown;
  const files = readdirSync(path.join(folder, "profiles")).toSorted();
  const grams = new Map<string, number[]>();
  for (const [language, file] of files.entries()) {
    const { freq, n_words: totals } = json("profiles", file) as Profile;
    for (const [gram, count] of Object.entries(freq)) {
      const known = grams.get(gram);
      const probability = count / totals[gram.length - 1]!;
      if (known === undefined) grams.set(gram, [language, probability]);
      else known.push(language, probability);
    }
  }
  const classes = Object.values(json("cjk.json") as Readonly<Record<string, string>>);
  return {
    languages: files.map((file) => path.basename(file, ".json")),
    grams,
    ideographs: new Map(classes.flatMap((group) => [...group].map((char) => [char, group[0]!] as const))),
  };
}
