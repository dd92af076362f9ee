import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

/** In turns a language (its place in `languages`) and the probability of the n-gram among those of its length there. */
export type Gram = readonly number[];

export interface LanguageProfiles {
  /** ISO 639-1 codes in their order, Chinese as `zh-cn` and `zh-tw`. */
  readonly languages: readonly string[];
  /** Of one to three characters; one that no language has is not there. */
  readonly grams: ReadonlyMap<string, Gram>;
  /** Of Chinese characters that the profiles do not tell apart, the one that stands for all. */
  readonly ideographs: ReadonlyMap<string, string>;
}

interface Profile {
  /** How often each n-gram was seen. */
  readonly freq: Readonly<Record<string, number>>;
  /** N-grams of one, two and three characters seen. */
  readonly n_words: readonly number[];
}

let read: LanguageProfiles | null = null;

/** The profiles of 53 languages that the package `langdetect` carries; read at the first call and kept (some 15 MB). */
export function languageProfiles(): LanguageProfiles {
  read ??= readProfiles(path.dirname(createRequire(import.meta.url).resolve("langdetect/package.json")));
  return read;
}

/** Its code is not loaded: it draws n-grams as it likes, and puts names into the global scope. */
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
  const classes = Object.values(json("res", "cjk.json") as Readonly<Record<string, string>>);
  return {
    languages: files.map((file) => path.basename(file, ".json")),
    grams,
    ideographs: new Map(classes.flatMap((group) => [...group].map((one) => [one, group[0]!] as const))),
  };
}
