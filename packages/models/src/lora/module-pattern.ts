/** Returns whether a module's name matches. */
export type ModulePattern = (name: string) => boolean;

export interface PatternLimits {
  /** The remaining steps, shared by all patterns with these limits. */
  steps: number;
  /** Returns the error for an invalid pattern; `got` names the problem. */
  readonly errorFor: (got: string) => Error;
}

const maxLength = 4000;
const maxDepth = 100;

/**
 * Compiles a regular expression with the meaning of Python's `re.fullmatch`: letters, `.`, sets, `\d \w \s \b` and their
 * opposites, groups, `|`, `* + ? {m,n}` greedy or lazy, `^ $`, lookahead. Throws for references, lookbehind, flags and
 * possessive or atomic groups. Patterns come from files, so matching does not backtrack: it tries each part once at each
 * position.
 */
export function modulePattern(text: string, limits: PatternLimits): ModulePattern {
  if (text.length > maxLength) throw limits.errorFor(`a pattern of ${text.length} characters`);
  const node = new Parser(text, limits.errorFor).parse();
  return (name) => endsIn(name, limits)(node, 0).has(name.length);
}

/** The steps that all patterns of one key may take to match. The longest patterns in use take a few thousand. */
export const maxPatternSteps = 5_000_000;

function step(limits: PatternLimits): void {
  limits.steps -= 1;
  if (limits.steps < 0) throw limits.errorFor("a pattern that takes too long to match");
}

/** A part of a pattern; `assertion` matches a position, not a character. */
type Node =
  | { readonly kind: "character"; readonly matches: (character: string) => boolean }
  | { readonly kind: "assertion"; readonly holds: (name: string, at: number) => boolean }
  | { readonly kind: "sequence" | "choice"; readonly nodes: readonly Node[] }
  | { readonly kind: "repeat"; readonly node: Node; readonly least: number; readonly most: number }
  | { readonly kind: "lookahead"; readonly node: Node; readonly isWanted: boolean };

/** Returns a function that finds all positions at which a part can end in `name` when it begins at `at`. */
function endsIn(name: string, limits: PatternLimits): (node: Node, at: number) => ReadonlySet<number> {
  const known = new Map<Node, Map<number, ReadonlySet<number>>>();
  const ends = (node: Node, at: number): ReadonlySet<number> => {
    const ofNode = known.get(node) ?? new Map<number, ReadonlySet<number>>();
    known.set(node, ofNode);
    const found = ofNode.get(at) ?? find(node, at);
    ofNode.set(at, found);
    return found;
  };
  const after = (node: Node, starts: ReadonlySet<number>): Set<number> => {
    const all = new Set<number>();
    for (const start of starts) {
      for (const end of ends(node, start)) {
        step(limits);
        all.add(end);
      }
    }
    return all;
  };
  const find = (node: Node, at: number): ReadonlySet<number> => {
    step(limits);
    const here = new Set([at]);
    const none = new Set<number>();
    switch (node.kind) {
      case "character":
        return at < name.length && node.matches(name[at]!) ? new Set([at + 1]) : none;
      case "assertion":
        return node.holds(name, at) ? here : none;
      case "sequence":
        return node.nodes.reduce<ReadonlySet<number>>((starts, part) => after(part, starts), here);
      case "choice":
        return new Set(node.nodes.flatMap((part) => [...ends(part, at)]));
      case "lookahead":
        return ends(node.node, at).size > 0 === node.isWanted ? here : none;
      case "repeat":
        return repeated(node.least, node.most, here, (starts) => after(node.node, starts), limits);
    }
  };
  return ends;
}

function repeated(
  least: number,
  most: number,
  here: ReadonlySet<number>,
  once: (starts: ReadonlySet<number>) => ReadonlySet<number>,
  limits: PatternLimits,
): ReadonlySet<number> {
  let reached = here;
  for (let count = 0; count < least && reached.size > 0; count++) {
    step(limits);
    reached = once(reached);
  }
  const all = new Set(reached);
  for (let count = least; count < most && reached.size > 0; count++) {
    // Another pass from positions already seen would find nothing new.
    reached = new Set([...once(reached)].filter((end) => !all.has(end)));
    for (const end of reached) all.add(end);
  }
  return all;
}

const isWordPart = (character: string | undefined) => character !== undefined && /\w/.test(character);
const isBoundary = (name: string, at: number) => isWordPart(name[at - 1]) !== isWordPart(name[at]);

const classes: Readonly<Record<string, (character: string) => boolean>> = {
  d: (character) => /\d/.test(character),
  D: (character) => /\D/.test(character),
  w: (character) => /\w/.test(character),
  W: (character) => /\W/.test(character),
  s: (character) => /\s/.test(character),
  S: (character) => /\S/.test(character),
};

const assertions: Readonly<Record<string, (name: string, at: number) => boolean>> = {
  b: isBoundary,
  B: (name, at) => !isBoundary(name, at),
  A: (_, at) => at === 0,
  Z: (name, at) => at === name.length,
};

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  readonly #errorFor: PatternLimits["errorFor"];

  constructor(text: string, errorFor: PatternLimits["errorFor"]) {
    this.#text = text;
    this.#errorFor = errorFor;
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#at < this.#text.length) throw this.#errorFor(`a ")" without "("`);
    return node;
  }

  #takes(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #next(): string {
    const character = this.#text[this.#at];
    if (character === undefined) throw this.#errorFor("an incomplete pattern");
    this.#at += 1;
    return character;
  }

  #choice(): Node {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw this.#errorFor("groups nested deeper than 100");
    const nodes = [this.#sequence()];
    while (this.#takes("|")) nodes.push(this.#sequence());
    this.#depth -= 1;
    return nodes.length === 1 ? nodes[0]! : { kind: "choice", nodes };
  }

  #sequence(): Node {
    const nodes: Node[] = [];
    for (;;) {
      const sign = this.#text[this.#at];
      if (sign === undefined || sign === "|" || sign === ")") return { kind: "sequence", nodes };
      nodes.push(this.#repeat(this.#part()));
    }
  }

  #repeat(node: Node): Node {
    const [found, , least, , most] =
      /^(?:([*+?])|\{(\d*)(,?)(\d*)\})/.exec(this.#text.slice(this.#at, this.#at + 40)) ?? [];
    if (found === undefined || found === "{}") return node;
    if (node.kind === "assertion") throw this.#errorFor(`a repeated assertion before "${found}"`);
    this.#at += found.length;
    if (this.#takes("+")) throw this.#errorFor(`the possessive "${found}+"`);
    this.#takes("?");
    const sign = found[0]!;
    if (/^(?:[*+?]|\{\d+,?\d*\}|\{,\d*\})/.test(this.#text.slice(this.#at, this.#at + 40)))
      throw this.#errorFor("two repetitions in a row");
    if (sign !== "{")
      return { kind: "repeat", node, least: sign === "+" ? 1 : 0, most: sign === "?" ? 1 : Infinity };
    const [from, comma] = [Number(least || 0), found.includes(",")];
    const to = comma ? (most ? Number(most) : Infinity) : from;
    if (to < from) throw this.#errorFor(`the repetition "${found}"`);
    return { kind: "repeat", node, least: from, most: to };
  }

  #part(): Node {
    const sign = this.#next();
    switch (sign) {
      case "(":
        return this.#group();
      case "[":
        return { kind: "character", matches: this.#set() };
      case ".":
        return { kind: "character", matches: (character) => character !== "\n" };
      case "^":
        return { kind: "assertion", holds: (_, at) => at === 0 };
      case "$":
        return { kind: "assertion", holds: (name, at) => at === name.length };
      case "\\":
        return this.#escaped();
      case "*":
      case "+":
      case "?":
        throw this.#errorFor(`"${sign}" with nothing to repeat`);
      default:
        return { kind: "character", matches: (character) => character === sign };
    }
  }

  #group(): Node {
    const isWanted = this.#takes("?=");
    const isLookahead = isWanted || this.#takes("?!");
    if (!isLookahead && !this.#takes("?:") && this.#text[this.#at] === "?") {
      const name = /^\?P<[A-Za-z_]\w*>/.exec(this.#text.slice(this.#at, this.#at + 100));
      if (name === null) throw this.#errorFor(`"(${this.#text.slice(this.#at, this.#at + 3)}"`);
      this.#at += name[0].length;
    }
    const node = this.#choice();
    if (!this.#takes(")")) throw this.#errorFor(`a "(" without ")"`);
    return isLookahead ? { kind: "lookahead", node, isWanted } : node;
  }

  #escaped(): Node {
    const letter = this.#next();
    const [matches, holds] = [classes[letter], assertions[letter]];
    if (holds !== undefined) return { kind: "assertion", holds };
    if (matches !== undefined) return { kind: "character", matches };
    // Every other escaped letter or digit has a special meaning in Python.
    if (/\w/.test(letter)) throw this.#errorFor(`"\\${letter}"`);
    return { kind: "character", matches: (character) => character === letter };
  }

  #set(): (character: string) => boolean {
    const isNegated = this.#takes("^");
    const members: ((character: string) => boolean)[] = [];
    for (let isFirst = true; isFirst || !this.#takes("]"); isFirst = false) {
      const from = this.#next();
      const ofClass = from === "\\" ? classes[this.#text[this.#at] ?? ""] : undefined;
      if (ofClass !== undefined) {
        this.#at += 1;
        members.push(ofClass);
        continue;
      }
      const low = from === "\\" ? this.#escapedInSet() : from;
      if (this.#text[this.#at] !== "-" || this.#text[this.#at + 1] === "]") {
        members.push((character) => character === low);
        continue;
      }
      this.#at += 1;
      const end = this.#next();
      const high = end === "\\" ? this.#escapedInSet() : end;
      if (high < low) throw this.#errorFor(`the range "${low}-${high}"`);
      members.push((character) => character >= low && character <= high);
    }
    return (character) => members.some((matches) => matches(character)) !== isNegated;
  }

  #escapedInSet(): string {
    const letter = this.#next();
    if (/\w/.test(letter)) throw this.#errorFor(`"\\${letter}" in a set`);
    return letter;
  }
}
