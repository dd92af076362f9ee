export interface Normalizer {
  readonly apply: (text: string) => string;
  /**
   * Returns how many UTF-16 units of the normalized text belong to the first character of the input, if the first `count`
   * units of `text` do. The scheme `first` of Metaspace depends on it.
   */
  readonly startOf: (text: string, count: number) => number;
}
