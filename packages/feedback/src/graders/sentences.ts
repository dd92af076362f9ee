const sentences = new Intl.Segmenter("en", { granularity: "sentence" });
const words = new Intl.Segmenter("en", { granularity: "word" });

/** Lower-case abbreviations with their final full stop. Omits those that are also words (`No.`). */
const abbreviations = new Set(
  (
    "mr mrs ms dr prof st sr jr vs etc e.g i.e cf al approx fig figs vol pp p ch eds inc ltd co corp dept est " +
    "gen lt sgt capt rev hon gov sen a.m p.m u.s u.k u.n ph.d b.c a.d jan feb apr jun jul aug sep sept oct nov dec"
  )
    .split(" ")
    .map((word) => `${word}.`),
);

/** A list marker: `1.`, `2)`, `-`. */
const marker = /^(?:\d{1,3}[.)]|[-*+•–])\s+/u;

/** Whether the last word of a segment is an abbreviation or an initial: `Dr.`, `e.g.`, `J.`; but not `I.`, which is a word. */
function endsInAbbreviation(segment: string): boolean {
  let end = segment.trimEnd().length;
  while (end > 0 && `"')]`.includes(segment[end - 1]!)) end -= 1;
  const last = segment
    .slice(0, end)
    .split(/[^\p{L}.]/u)
    .at(-1)!;
  return abbreviations.has(last.toLowerCase()) || /^(?!I\.$)(?:\p{Lu}\.)+$/u.test(last);
}

/**
 * Counts the sentences of an English text by Unicode's boundaries (UAX 29), with `Intl.Segmenter`. An abbreviation, an
 * initial, a list number and a decimal do not end a sentence. A list entry is a sentence, with or without a full stop. A line
 * that begins in lower case continues the line before it.
 */
export function countSentences(text: string): number {
  let count = 0;
  for (const line of text.replaceAll(/(?<![ \t])[ \t]*\r?\n(?=\p{Ll})/gu, " ").split(/\r?\n/)) {
    const entry = line.trim().replace(marker, "");
    const segments = [...sentences.segment(entry)].map(({ segment }) => segment);
    const ends = segments.filter(
      (segment, at) =>
        /[\p{L}\p{N}]/u.test(segment) && (at === segments.length - 1 || !endsInAbbreviation(segment)),
    );
    // A line whose only words end in an abbreviation is still one sentence.
    const hasWords = segments.some((segment) => /[\p{L}\p{N}]/u.test(segment));
    count += Math.max(ends.length, hasWords ? 1 : 0);
  }
  return count;
}

/** Counts words and numbers by the same boundaries; does not count punctuation. */
export function countWords(text: string): number {
  // A segmenter takes time in proportion to its whole text for each segment.
  return text.split(/\s+/).reduce((count, part) => count + wordsIn(part), 0);
}

const wordsIn = (part: string): number =>
  [...words.segment(part)].filter(({ isWordLike }) => isWordLike).length;

/** An open bracket, but not `:(` and `;-(`. */
const openBracket = /(?<![:;]-?)[([{]/u;

/**
 * Whether a text is clearly incomplete: a code block stays open, or the last line ends with a comma, a colon, a dash or an open
 * bracket. Any other text can be complete, also without a full stop: `Paris`, `Yes, it is`, `See https://example.com`.
 */
export function isCutOff(text: string): boolean {
  const trimmed = text.trim();
  if ((trimmed.match(/^[^\S\n\r\u2028\u2029]*```/gm)?.length ?? 0) % 2 === 1) return true;
  const line = trimmed.split(/\r?\n/).at(-1)!;
  // The code in `{` is not an open bracket.
  const prose = line.replaceAll(/`[^`]*`/g, "``");
  const closed = Math.max(...[")", "]", "}"].map((bracket) => prose.lastIndexOf(bracket)));
  return /[,，、:：–—]$/u.test(prose) || openBracket.test(prose.slice(closed + 1));
}
