/** Sizes that a graph leaves open, by name. */
export type Sizes = Readonly<Record<string, number>>;

/** A dimension of a tensor, as the product of a constant and open sizes. */
export interface Dimension {
  readonly constant: number;
  /** Names of the sizes; a squared size occurs twice. */
  readonly sizes: readonly string[];
}

/** Factors a dimension into sizes by divisibility. */
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
