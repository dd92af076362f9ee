/** No name of an option or a file is nearly as long. */
const longestWord = 500;

/** Returns the candidate with the fewest typing errors between it and `word`; null if a typing error is unlikely. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  if (word.length > longestWord) return null;
  const distances = candidates.map((candidate) => editDistance(word.toLowerCase(), candidate.toLowerCase()));
  const fewest = Math.min(...distances);
  const best = candidates[distances.indexOf(fewest)];
  return best !== undefined && fewest <= Math.max(2, Math.floor(best.length / 2)) ? best : null;
}

/** Returns "Did you mean …?" for the known name nearest to a wrong one, or for the only one that it abbreviates; otherwise null. */
export function didYouMean(name: unknown, known: readonly string[]): string | null {
  const close = typeof name === "string" ? (nearest(name, known) ?? abbreviatedBy(name, known)) : null;
  return close && `Did you mean "${close}"?`;
}

/** Returns the only name that has the letters of `word` in this order from its first one: "arc_challenge" for "arcc". */
function abbreviatedBy(word: string, known: readonly string[]): string | null {
  const letters = word.toLowerCase();
  if (letters.length < 3) return null;
  const matches = known.filter((name) => {
    let at = 0;
    for (const letter of name.toLowerCase()) if (letter === letters[at]) at += 1;
    return at === letters.length && name[0]!.toLowerCase() === letters[0];
  });
  return matches.length === 1 ? matches[0]! : null;
}

/** Returns the Levenshtein distance: characters to insert, delete or replace. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
