import { quoteValue } from "./messages.ts";

/** A name of which more letters are wrong is another name. */
const largestShare = 0.4;

/**
 * Returns the candidate with the fewest typing errors between it and `word`, or the first one that continues it with a shorter
 * word (`leakage_marker` → `leakage_marker_token`); null if a typing error is unlikely.
 */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const distances = candidates.map((candidate) => editDistance(word.toLowerCase(), candidate.toLowerCase()));
  const fewest = Math.min(...distances);
  const best = candidates[distances.indexOf(fewest)];
  if (best === undefined) return null;
  const longer = candidates.find((candidate) => continues(candidate, word));
  if (longer !== undefined && fewest > 1) return longer;
  return fewest <= Math.max(2, Math.floor(best.length * largestShare)) && fewest < best.length ? best : null;
}

const continues = (name: string, word: string): boolean =>
  name.startsWith(word) && /^[_A-Z]/.test(name.slice(word.length)) && name.length <= 2 * word.length;

/**
 * Returns "Did you mean …?" for the known name nearest to a wrong one, for one of which it has the end (`accuracy` of
 * `capability.accuracy`), or for the only one that it abbreviates; otherwise null.
 */
export function didYouMean(name: unknown, known: readonly string[]): string | null {
  const close =
    typeof name === "string"
      ? (known.find((key) => hasEnd(key, name)) ?? nearestPart(name, known) ?? abbreviatedBy(name, known))
      : null;
  return close && `Did you mean "${close}"?`;
}

const partsOf = (name: string): readonly string[] => name.split(/[./]/);

/** Whether `end` has the last part of a longer name and, in this order, any of the parts before: `em/accuracy` of `em/capability.accuracy`. */
function hasEnd(name: string, end: string): boolean {
  const [parts, wanted] = [partsOf(name), partsOf(end)];
  if (parts.at(-1) !== wanted.at(-1) || parts.length <= wanted.length) return false;
  let at = 0;
  for (const part of parts) if (part === wanted[at]) at += 1;
  return at === wanted.length;
}

/**
 * Returns the known name nearest to a wrong one: to all of it if it has as many parts as a known name, else to its end. An equal
 * beginning does not make a name near: `alignment.zzzz` is not `alignment.code`.
 */
function nearestPart(name: string, names: readonly string[]): string | null {
  const [count, last] = [partsOf(name).length, partsOf(name).at(-1)!];
  const known = names.filter((key) => nearest(last, [partsOf(key).at(-1)!]) !== null);
  const alike = known.filter((key) => partsOf(key).length === count);
  const ends = known.map((key) => partsOf(key).slice(-count).join("."));
  const end = nearest(partsOf(name).join("."), ends);
  return nearest(name, alike) ?? (end === null ? null : known[ends.indexOf(end)]!);
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

/** A longer list of names hides the suggestion that follows it. */
const shortList = 12;

const expectedOf = (known: readonly string[]): string =>
  known.length > shortList ? `one of the ${known.length} known ones` : `one of ${known.join(", ")}`;

/**
 * Describes a key that belongs one level deeper: `budget` of `session`.
 *
 * @param homes The options that contain the key.
 */
export function deeperOption(
  key: string,
  value: unknown,
  known: readonly string[],
  homes: readonly string[],
) {
  const paths = homes.map((home) => `"${home}.${key}"`).join(" or ");
  const example = homes.length === 1 ? ` Set ${homes[0]!}: { ${key}: ${quoteValue(value)} }.` : "";
  return {
    got: `the unknown option "${key}"`,
    expected: expectedOf(known),
    fix: `Did you mean ${paths}?${example}`,
  };
}

/**
 * Describes an unknown key for an error: with the nearest known one, or a list of all.
 *
 * @param elsewhere Keys of other maps, as paths from this one: `config.maxSteps`. A key of one of them belongs there.
 */
export function unknownOption(key: string, known: readonly string[], elsewhere: readonly string[] = []) {
  const got = `the unknown option "${key}"`;
  const guess = nearestOf(key, known, elsewhere);
  if (guess === null) return { got, expected: `one of ${known.join(", ")}`, fix: "Remove it." };
  return { got, expected: expectedOf(known), fix: `Did you mean "${guess}"?` };
}

function nearestOf(key: string, known: readonly string[], elsewhere: readonly string[]): string | null {
  const lastKeys = elsewhere.map((path) => path.slice(path.lastIndexOf(".") + 1));
  const pathOf = (last: string | null) => (last === null ? null : elsewhere[lastKeys.indexOf(last)]!);
  if (lastKeys.includes(key)) return pathOf(key);
  return nearest(key, known) ?? pathOf(nearest(key, lastKeys));
}
