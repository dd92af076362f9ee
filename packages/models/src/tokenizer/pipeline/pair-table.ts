/** A map from pairs of integers from 0 to integers from 0, about five times as fast as a Map with combined keys. */
export class PairTable {
  private firsts: Int32Array;
  private seconds: Int32Array;
  private values: Int32Array;
  private size = 0;

  constructor(expectedSize: number) {
    const capacity = 2 ** Math.ceil(Math.log2(Math.max(8, expectedSize * 2)));
    this.firsts = new Int32Array(capacity).fill(-1);
    this.seconds = new Int32Array(capacity);
    this.values = new Int32Array(capacity);
  }

  /** Returns the value of a pair, or -1. */
  get(first: number, second: number): number {
    const at = this.slot(first, second);
    return this.firsts[at] === -1 ? -1 : this.values[at]!;
  }

  set(first: number, second: number, value: number): void {
    const at = this.slot(first, second);
    if (this.firsts[at] === -1 && ++this.size * 2 > this.firsts.length) {
      this.grow();
      this.set(first, second, value);
      return;
    }
    this.firsts[at] = first;
    this.seconds[at] = second;
    this.values[at] = value;
  }

  private slot(first: number, second: number): number {
    const mask = this.firsts.length - 1;
    let hash = Math.imul(first, 0x9e3779b1) ^ Math.imul(second, 0x85ebca6b);
    hash ^= hash >>> 15;
    let at = hash & mask;
    while (this.firsts[at] !== -1 && (this.firsts[at] !== first || this.seconds[at] !== second))
      at = (at + 1) & mask;
    return at;
  }

  private grow(): void {
    const { firsts, seconds, values } = this;
    const larger = new PairTable(firsts.length);
    this.firsts = larger.firsts;
    this.seconds = larger.seconds;
    this.values = larger.values;
    this.size = 0;
    for (const [i, first] of firsts.entries()) if (first !== -1) this.set(first, seconds[i]!, values[i]!);
  }
}

/** A trie of texts by UTF-16 unit. Its root is node 0. */
export class Trie {
  /** The id of the text that ends at each node, or -1. */
  readonly ids: number[] = [-1];
  private readonly children: PairTable;

  constructor(expectedTexts: number) {
    this.children = new PairTable(expectedTexts * 3);
  }

  /** Returns false if it already has the text. */
  add(text: string, id: number): boolean {
    let node = 0;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      let child = this.child(node, unit);
      if (child === -1) {
        child = this.ids.push(-1) - 1;
        this.children.set(node, unit, child);
      }
      node = child;
    }
    if (this.ids[node] !== -1) return false;
    this.ids[node] = id;
    return true;
  }

  /** Returns the node below a node, or -1. */
  child(node: number, unit: number): number {
    return this.children.get(node, unit);
  }
}
