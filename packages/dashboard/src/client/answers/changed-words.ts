/** A part of two texts: in both, only in the first, or only in the second. */
export interface TextPart {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** Cells of the table of common subsequences: 4 MiB. Longer differences are one removal and one addition. */
const maxCells = 2 ** 21;

/**
 * Returns the words that change between two texts. The parts that are the same or removed are the first text, and those that are the
 * same or added the second, character for character. Finds a longest common subsequence of words, spaces and other characters.
 */
export function changedWords(first: string, second: string): readonly TextPart[] {
  const [a, b] = [wordsOf(first), wordsOf(second)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  return joined([
    ...a.slice(0, start).map((text): TextPart => ({ kind: "same", text })),
    ...changesOf(a.slice(start, endA), b.slice(start, endB)),
    ...a.slice(endA).map((text): TextPart => ({ kind: "same", text })),
  ]);
}

const wordsOf = (text: string): readonly string[] => text.match(/[\p{L}\p{M}\p{N}_'’]+|\s+|[^]/gu) ?? [];

function changesOf(a: readonly string[], b: readonly string[]): readonly TextPart[] {
  const width = b.length + 1;
  const parts: TextPart[] = [];
  let [i, j] = [0, 0];
  if ((a.length + 1) * width <= maxCells) {
    // common[i * width + j] is the length of the longest common subsequence of a from i and b from j.
    const common = new Uint16Array((a.length + 1) * width);
    for (let row = a.length - 1; row >= 0; row--)
      for (let column = b.length - 1; column >= 0; column--)
        common[row * width + column] =
          a[row] === b[column]
            ? common[(row + 1) * width + column + 1]! + 1
            : Math.max(common[(row + 1) * width + column]!, common[row * width + column + 1]!);
    while (i < a.length && j < b.length) {
      if (a[i] === b[j]) {
        parts.push({ kind: "same", text: a[i]! });
        [i, j] = [i + 1, j + 1];
      } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
        parts.push({ kind: "removed", text: a[i++]! });
      else parts.push({ kind: "added", text: b[j++]! });
    }
  }
  return [
    ...parts,
    ...a.slice(i).map((text): TextPart => ({ kind: "removed", text })),
    ...b.slice(j).map((text): TextPart => ({ kind: "added", text })),
  ];
}

/** Joins neighbours of one kind. Spaces between two changes belong to both, so that a phrase is marked as one. */
function joined(parts: readonly TextPart[]): readonly TextPart[] {
  const result: TextPart[] = [];
  let [same, removed, added, spaces] = ["", "", "", ""];
  const flush = (): void => {
    const runs = [
      { kind: "same", text: same },
      { kind: "removed", text: removed },
      { kind: "added", text: added },
    ] as const;
    result.push(...runs.filter(({ text }) => text !== ""));
    [same, removed, added, spaces] = [spaces, "", "", ""];
  };
  for (const { kind, text } of parts) {
    const isChanging = removed !== "" || added !== "";
    if (kind === "same") {
      if (isChanging && /^\s+$/.test(text)) spaces += text;
      else {
        if (isChanging) flush();
        same += text;
      }
      continue;
    }
    [removed, added, spaces] = [removed + spaces, added + spaces, ""];
    if (kind === "removed") removed += text;
    else added += text;
  }
  flush();
  return same === "" ? result : [...result, { kind: "same", text: same }];
}
