/** A node takes about 500 bytes. */
const maxNodes = 1_000_000;

/** The library's model at run time. */
interface Model {
  encode(pieces: string[]): string[];
}

/**
 * Makes a Unigram model throw for a piece of text whose lattice would not fit into memory. The lattice holds a node for each token
 * that begins at a character, and pieces have no limit: a text without spaces is one piece.
 */
export function limitLattice(model: Model, { type, vocab }: Readonly<Record<string, unknown>>): void {
  if (type !== "Unigram" || !Array.isArray(vocab)) return;
  const tokens = (vocab as readonly (readonly [string, number])[]).map(([token]) => token);
  const longest = tokens.reduce((most, { length }) => Math.max(most, length), 1);
  let depth: number | null = null;
  const encode = model.encode.bind(model);
  model.encode = (pieces) => {
    for (const { length } of pieces) {
      if (length * longest <= maxNodes) continue;
      depth ??= deepestPrefixes(tokens);
      if (length * depth > maxNodes)
        throw new RangeError(
          `a text of ${length} characters without a break, for which this tokenizer needs too much memory`,
        );
    }
    return encode(pieces);
  };
}

/** Returns the largest number of tokens that can begin at one character: each is a prefix of the next. At least 1. */
export function deepestPrefixes(tokens: readonly string[]): number {
  let deepest = 1;
  const open: string[] = [];
  for (const token of [...new Set(tokens)].sort()) {
    while (open.length > 0 && !token.startsWith(open.at(-1)!)) open.pop();
    if (token !== "") deepest = Math.max(deepest, open.push(token));
  }
  return deepest;
}
