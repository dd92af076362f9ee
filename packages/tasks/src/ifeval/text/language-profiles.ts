import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Alternates a language (its index in `languages`) and the n-gram's probability among those of its length in that language. */
export type Gram = readonly number[];

export interface LanguageProfiles {
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
    ideographs: new Map(classes.flatMap((group) => [...group].map((one) => [one, group[0]!] as const))),
  };
}
