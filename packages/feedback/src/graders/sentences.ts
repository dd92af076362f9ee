const sentences = new Intl.Segmenter("en", { granularity: "sentence" });
const words = new Intl.Segmenter("en", { granularity: "word" });

/** With the full stop that they end in, small letters; none that is a word of its own (`No.`). */
const abbreviations = new Set(
  (
    "mr mrs ms dr prof st sr jr vs etc e.g i.e cf al approx fig figs vol pp p ch eds inc ltd co corp dept est " +
    "gen lt sgt capt rev hon gov sen a.m p.m u.s u.k u.n ph.d b.c a.d jan feb apr jun jul aug sep sept oct nov dec"
  )
    .split(" ")
    .map((word) => `${word}.`),
);

/** `1.`, `2)`, `-`: what numbers a line, and is no sentence. */
const marker = /^(?:\d{1,3}[.)]|[-*+•–])\s+/u;

/** Whether the last word of a segment shortens a word, or is an initial: `Dr.`, `e.g.`, `J.`; not `I.`, which is a word. */
function endsInAbbreviation(segment: string): boolean {
  const last = /([\p{L}.]+\.)["')\]]*\s*$/u.exec(segment)?.[1];
  return (
    last !== undefined && (abbreviations.has(last.toLowerCase()) || /^(?!I\.$)(?:\p{Lu}\.)+$/u.test(last))
  );
}

/**
 * Sentences of an English text, by Unicode's boundaries (UAX 29) as the system has them, without those behind an
 * abbreviation, an initial or the number of a list's entry; decimals hold none. An entry of a list is a sentence, with or
 * without a full stop; a line that goes on in small letters belongs to the one before it.
 */
export function countSentences(text: string): number {
  let count = 0;
  for (const line of text.replaceAll(/[ \t]*\r?\n(?=\p{Ll})/gu, " ").split(/\r?\n/)) {
    const segments = [...sentences.segment(line.trim().replace(marker, ""))].map(({ segment }) => segment);
    const ends = segments.filter(
      (segment, at) =>
        /[\p{L}\p{N}]/u.test(segment) && (at === segments.length - 1 || !endsInAbbreviation(segment)),
    );
    // Behind the last full stop there may be nothing but signs: an abbreviation before them ends the text.
    const isBegun = segments.some((segment) => /[\p{L}\p{N}]/u.test(segment));
    count += Math.max(ends.length, isBegun ? 1 : 0);
  }
  return count;
}

/** Words and numbers, by the same boundaries; signs are none. */
export function countWords(text: string): number {
  return [...words.segment(text)].filter(({ isWordLike }) => isWordLike).length;
}
