/** Sizes that a graph leaves open, by name. */
export type Sizes = Readonly<Record<string, number>>;

/** A constant times sizes: what a dimension of a tensor is. */
export interface Dimension {
  readonly constant: number;
  /** Names of sizes; one that counts twice stands twice. */
  readonly sizes: readonly string[];
}

/** Which sizes a dimension is made of, by their divisibility. */
export function dimensionOf(value: number, sizes: Sizes): Dimension {
  const found: string[] = [];
  let constant = value;
  for (const [name, size] of Object.entries(sizes)) {
    while (constant % size === 0 && constant !== 0) {
      found.push(name);
      constant /= size;
    }
  }
  return { constant, sizes: found };
}

export function valueOf({ constant, sizes: names }: Dimension, sizes: Sizes): number {
  return names.reduce((product, name) => product * sizes[name]!, constant);
}
