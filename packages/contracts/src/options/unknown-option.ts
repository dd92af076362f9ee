import { nearest } from "./nearest.ts";
import { quoteValue } from "./quote-value.ts";

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
