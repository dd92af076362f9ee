import { findMatches, type Match } from "./pattern.ts";

export const splitBehaviors = [
  "Removed",
  "Isolated",
  "MergedWithPrevious",
  "MergedWithNext",
  "Contiguous",
] as const;

export type SplitBehavior = (typeof splitBehaviors)[number];

/** Returns the parts of a text and where each starts; `isInverted` splits at what does not match. */
export function splitText(
  regex: RegExp,
  text: string,
  behavior: SplitBehavior,
  isInverted = false,
): [part: string, start: number][] {
  const found = findMatches(regex, text);
  const matches = isInverted ? found.map(([start, end, is]): Match => [start, end, !is]) : found;
  return joined(matches, behavior).map(([start, end]) => [text.slice(start, end), start]);
}

function joined(
  matches: readonly Match[],
  behavior: SplitBehavior,
): (readonly [number, number, ...unknown[]])[] {
  switch (behavior) {
    case "Isolated":
      return [...matches];
    case "Removed":
      return matches.filter(([, , isMatch]) => !isMatch);
    case "Contiguous":
      return merged(matches, (isMatch, wasMatch) => isMatch === wasMatch);
    case "MergedWithPrevious":
      return merged(matches, (isMatch, wasMatch) => isMatch && !wasMatch);
    case "MergedWithNext":
      return merged(matches.toReversed(), (isMatch, wasMatch) => isMatch && !wasMatch).reverse();
  }
}

/** Extends a range by the following one where `joins` says so; what comes before the first range is no match. */
function merged(
  matches: readonly Match[],
  joins: (isMatch: boolean, wasMatch: boolean) => boolean,
): [number, number][] {
  const ranges: [number, number][] = [];
  let wasMatch = false;
  for (const [start, end, isMatch] of matches) {
    const last = ranges.at(-1);
    if (last !== undefined && joins(isMatch, wasMatch)) {
      last[0] = Math.min(last[0], start);
      last[1] = Math.max(last[1], end);
    } else ranges.push([start, end]);
    wasMatch = isMatch;
  }
  return ranges;
}
