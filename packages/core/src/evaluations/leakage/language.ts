/** The most common words of languages in Latin script. */
const stopWords = {
  de: "der die das und ist nicht ein eine ich du sie wir es zu den von mit auf für im dem auch wie sich aus bei nach oder aber wenn dass sind war haben hat kann wird noch nur",
  en: "the of and to in is you that it he was for on are with as his they at be this have from or had by but not what all were we when your can there an which do their if will how about them",
  es: "el la los las de que y en un una es por con no para su al lo como más pero sus le ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde",
  fr: "le la les de des et en un une est que qui dans pour pas au sur il elle je vous nous ce se plus par avec sont ou mais son sa ne du cette aux être fait tout comme",
  it: "il lo la gli le di e è che un una in per non con si da come del della dei sono ma anche più nel alla questo ha ci o se mi al ho suo perché quando",
  nl: "de het een en van ik te dat die in is niet op aan met als voor er maar om dan zou wat mijn men dit zo door over ze bij ook tot je uit der haar naar heb hoe heeft",
  pt: "o a os as de que e do da em um uma para com não é no na por mais dos como mas ao ele das tem seu sua ou quando muito nos já está eu também só pelo até isso",
} as const;

/** Languages that are recognized by their script alone. */
const scripts = {
  ar: /\p{Script=Arabic}/gu,
  el: /\p{Script=Greek}/gu,
  he: /\p{Script=Hebrew}/gu,
  hi: /\p{Script=Devanagari}/gu,
  ja: /[\p{Script=Hiragana}\p{Script=Katakana}]/gu,
  ko: /\p{Script=Hangul}/gu,
  ru: /\p{Script=Cyrillic}/gu,
  zh: /\p{Script=Han}/gu,
} as const;

export type Language = keyof typeof stopWords | keyof typeof scripts;
/** ISO 639-1 codes. */
export const languages = [...Object.keys(stopWords), ...Object.keys(scripts)] as readonly Language[];

const sets = Object.entries(stopWords).map(
  ([language, words]) => [language as Language, new Set(words.split(" "))] as const,
);

/**
 * Whether a string looks like a language. This is a rule, not language identification. Latin script: at least two words and a
 * tenth of all words are among the language's forty most common ones, and more than for any other language here. Other
 * scripts: at least half of the letters (a tenth for Japanese kana, which are mixed with Chinese characters; a string with
 * kana is not Chinese). Misses short and mixed answers, and takes Ukrainian for Russian, because it knows scripts only.
 */
export function looksLike(language: Language, text: string): boolean {
  if (language in scripts) return isInScript(language as keyof typeof scripts, text);
  const words =
    text
      .normalize("NFC")
      .toLowerCase()
      .match(/\p{L}+/gu) ?? [];
  const counts = sets.map(([one, set]) => ({ one, found: words.filter((word) => set.has(word)).length }));
  const own = counts.find(({ one }) => one === language)!.found;
  const best = Math.max(...counts.filter(({ one }) => one !== language).map(({ found }) => found));
  return own >= 2 && own >= words.length / 10 && own > best;
}

function isInScript(language: keyof typeof scripts, text: string): boolean {
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  const of = (one: keyof typeof scripts) => text.match(scripts[one])?.length ?? 0;
  if (letters === 0) return false;
  if (language === "ja") return of("ja") >= letters / 10;
  if (language === "zh" && of("ja") >= letters / 10) return false;
  return of(language) >= letters / 2;
}
