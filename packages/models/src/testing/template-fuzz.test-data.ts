/** Random templates over the constructs, filters, tests and methods of jinja2; the same for the same seed. */
export class TemplateFuzz {
  #state: number;
  #macros = 0;

  constructor(seed: number) {
    this.#state = seed;
  }

  #next(count: number): number {
    // mulberry32
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % count;
  }
  #pick<T>(items: readonly T[]): T {
    return items[this.#next(items.length)]!;
  }
  #chance(percent: number): boolean {
    return this.#next(100) < percent;
  }
  #many(count: number, make: () => string, separator = ""): string {
    return Array.from({ length: count }, make).join(separator);
  }

  string(): string {
    return this.#pick(strings);
  }
  number(): string {
    return this.#pick(numbers);
  }
  #list(): string {
    return this.#pick([
      () => this.#pick(lists),
      () => `[${this.#many(this.#next(4), () => this.#leaf(), ", ")}]`,
      () => `(${this.#many(2 + this.#next(2), () => this.#leaf(), ", ")})`,
      () => `[${this.#many(2 + this.#next(3), () => this.string(), ", ")}]`,
      () => `[${this.#many(2 + this.#next(3), () => this.number(), ", ")}]`,
    ])();
  }
  #dict(): string {
    return this.#pick([
      () => this.#pick(dicts),
      () =>
        `{${this.#many(this.#next(3), () => `${this.#pick(["'a'", "'b'", "'B'", "1", "none"])}: ${this.#leaf()}`, ", ")}}`,
    ])();
  }
  #leaf(): string {
    return this.#pick([
      () => this.string(),
      () => this.string(),
      () => this.number(),
      () => this.#pick(["none", "true", "false", "missing", "text", "n", "half", "x", "y"]),
      () => this.#pick(lists),
      () => this.#pick(dicts),
    ])();
  }

  expression(depth = 2): string {
    if (depth === 0) return this.#leaf();
    const sub = () => this.expression(depth - 1);
    return this.#pick([
      () => this.filtered(this.#pick(Object.keys(filters)), depth),
      () => this.filtered(this.#pick(Object.keys(filters)), depth),
      () => this.method(this.#pick(Object.keys(methods)), depth),
      () => this.method(this.#pick(Object.keys(methods)), depth),
      () => this.tested(this.#pick(Object.keys(tests)), depth),
      () => `(${sub()} ${this.#pick(["+", "-", "*", "/", "//", "%", "~", "~", "and", "or"])} ${sub()})`,
      () => `(${this.number()} ${this.#pick(["+", "-", "*", "/", "//", "%", "<", ">="])} ${this.number()})`,
      // Python computes large powers for hours.
      () => `(${this.number()} ** ${this.#pick(["0", "1", "2", "5", "-1", "0.5", "half", "-2.5", "true"])})`,
      () => `(${sub()} ${this.#pick(["==", "!=", "<", ">", "<=", ">=", "in", "not in"])} ${sub()})`,
      () => `(${this.number()} < ${this.number()} ${this.#pick(["<", "==", "!=", ">="])} ${this.number()})`,
      () =>
        `${this.#pick([() => this.string(), () => this.#list(), () => this.#pick(["text", "n", "d", "x", "words"])])()}[${this.#index()}]`,
      () => `(${sub()} if ${sub()}${this.#chance(70) ? ` else ${sub()}` : ""})`,
      () => `(not ${sub()})`,
      () => `${this.#dict()}.${this.#pick(["a", "b", "items", "missing", "text"])}`,
      () => `${this.#dict()}[${this.#pick(["'a'", "'b'", "1", "none", "'items'", "missing"])}]`,
      () => this.#percent(),
      () => this.#format(),
      () => this.#list(),
      () => this.#dict(),
    ])();
  }

  #index(): string {
    const bound = () => this.#pick(["", "", "0", "1", "-1", "2", "-2", "5", "-9", "none"]);
    return this.#chance(40)
      ? this.#pick(["0", "1", "-1", "7", "-7", "true", "'a'", "missing", "none", "0.5"])
      : `${bound()}:${bound()}${this.#chance(50) ? `:${this.#pick(["", "1", "2", "-1", "-2", "none"])}` : ""}`;
  }
  #percent(): string {
    const flags = this.#pick(["", "", "-", "0", "+", " ", "#"]) + this.#pick(["", "", "5", "12"]);
    const precision = this.#pick(["", "", "", ".0", ".1", ".3", ".10"]);
    const type = this.#pick([
      "s",
      "s",
      "r",
      "a",
      "d",
      "i",
      "x",
      "X",
      "o",
      "e",
      "E",
      "f",
      "g",
      "G",
      "c",
      "%",
      "q",
    ]);
    const value = this.#pick([() => this.number(), () => this.#leaf(), () => `(${this.#leaf()},)`])();
    return this.#chance(80)
      ? `('[%${flags}${precision}${type}]' % ${value})`
      : `('%s|%(a)s|%d' % ${this.#pick(["{'a': 1}", "(1, 2)", "('a', {'a': 2}, 3)", "d"])})`;
  }
  #format(): string {
    const fill = this.#pick(["", "", "<", ">", "^", "=", "*^", "0", "é>"]);
    const width = this.#pick(["", "5", "12", "05", "012"]);
    const spec =
      fill +
      this.#pick(["", "", "+", " ", "-"]) +
      this.#pick(["", "", "#"]) +
      width +
      this.#pick(["", "", ",", "_"]) +
      this.#pick(["", "", ".2", ".0", ".10"]) +
      this.#pick(["", "", "d", "s", "x", "b", "o", "X", "e", "f", "g", "G", "%", "c"]);
    const value = this.#pick([() => this.number(), () => this.number(), () => this.#leaf()])();
    return this.#pick([
      () => `'[{:${spec}}]'.format(${value})`,
      () => `'[{:${spec}}]'.format(${value})`,
      () => `'{}{!r}{{}}{0}'.format(${value}, 2)`,
      () => `'{1}{0!s:>6}{a[0]}'.format(${value}, ${this.#leaf()}, a=${this.#leaf()})`,
      () => `'{0.a}{0[a]}{b:{w}}'.format(${this.#dict()}, b=${this.#leaf()}, w=8)`,
    ])();
  }

  #argument(kind: string, depth: number): string {
    switch (kind) {
      case "s":
        return this.string();
      case "n":
        return this.number();
      case "i":
        return this.#pick(["0", "1", "2", "3", "-1", "5"]);
      case "l":
        return this.#list();
      case "d":
        return this.#dict();
      case "b":
        return this.#pick(["true", "false"]);
      case "any":
        return this.expression(Math.max(0, depth - 1));
      default:
        return this.#pick(kind.split("|"));
    }
  }

  #arguments(kinds: readonly string[], depth: number): string {
    const parts: string[] = [];
    for (const kind of kinds) {
      const isOptional = kind.endsWith("?");
      if (isOptional && this.#chance(45)) break;
      parts.push(this.#argument(kind.replace(/\?$/, ""), depth));
    }
    return parts.join(", ");
  }

  filtered(name: string, depth = 1): string {
    const [self = "any", ...kinds] = filters[name]!;
    const value = this.#chance(75) ? this.#argument(self, depth) : this.expression(depth - 1);
    const args = this.#arguments(kinds, depth);
    // Generators print an address.
    const shown = generators.has(name) && this.#chance(90) ? "|list" : "";
    return `(${value}|${name}${args === "" ? "" : `(${args})`}${shown})`;
  }
  method(name: string, depth = 1): string {
    const [self = "any", ...kinds] = methods[name]!;
    const value = this.#chance(90) ? this.#argument(self, depth) : this.expression(depth - 1);
    return `(${value}).${name}(${this.#arguments(kinds, depth)})`;
  }
  tested(name: string, depth = 1): string {
    const [self = "any", ...kinds] = tests[name]!;
    const value = this.#argument(self, depth);
    const args = this.#arguments(kinds, depth);
    return `(${value} is ${this.#chance(20) ? "not " : ""}${name}${args === "" ? "" : `(${args})`})`;
  }

  static readonly filters = (): string[] => Object.keys(filters);
  static readonly methods = (): string[] => Object.keys(methods);
  static readonly tests = (): string[] => Object.keys(tests);

  /** A whole template. */
  template(): string {
    this.#macros = 0;
    return this.#body(3, false) + this.#pick(["", "\n", "\n\n", "\r\n"]);
  }

  #open(tag: string): string {
    return `{%${this.#pick(["", "", "-", "-", "+"])} ${tag} ${this.#pick(["", "", "-", "-", "+"])}%}`;
  }
  #data(): string {
    return this.#pick([
      "a",
      "b ",
      " c",
      "\n",
      "\n\n",
      "  ",
      "\n  ",
      "\t",
      "é𝟜",
      "x\r\ny",
      "\r\n",
      "{",
      "}",
      "<|im_end|>\n",
    ]);
  }
  #name(): string {
    return this.#pick(["x", "y", "z", "messages"]);
  }
  #value(): string {
    return this.#pick([
      () => this.#name(),
      () => this.#name(),
      () => this.number(),
      () => this.string(),
      () => `${this.#name()} ~ '.'`,
      () => `ns.v`,
      () => this.expression(1),
    ])();
  }
  #items(): string {
    return this.#pick([
      "[1, 2, 3]",
      "'ab'",
      "range(3)",
      "rows",
      "rows",
      "missing",
      "d",
      "d.items()",
      "[]",
      "n",
      "rows|map(attribute='k')",
      "[3, 1]|sort",
    ]);
  }
  #body(depth: number, isInLoop: boolean): string {
    return this.#many(1 + this.#next(depth > 1 ? 5 : 3), () => this.#part(depth, isInLoop));
  }
  #part(depth: number, isInLoop: boolean): string {
    const inner = (loop = isInLoop) => this.#body(depth - 1, loop);
    const simple = [
      () => this.#data(),
      () => this.#data(),
      () => `{{${this.#pick(["", "-"])} ${this.#value()} ${this.#pick(["", "-"])}}}`,
      () => `{{ ${this.#name()} }}`,
      () => this.#open(`set ${this.#name()} = ${this.#value()}`),
      () => this.#open(`set ${this.#name()} = ${this.#value()}`),
      () => this.#open(`set x, y = ${this.#pick(["(1, 2)", "y, x", "'ab'", "[1]"])}`),
      () => this.#open(`set ns.v = ${this.#value()}`),
      () => `{#${this.#pick(["", "-"])} note ${this.#pick(["", "-", "+"])}#}`,
      () => `${this.#open("raw")}{{ x }}{% if %}\n${this.#open("endraw")}`,
      () =>
        isInLoop
          ? this.#open(`if ${this.#condition(true)}`) +
            this.#data() +
            this.#open(this.#pick(["break", "continue"])) +
            this.#open("endif")
          : this.#data(),
      () => (isInLoop ? `{{ loop.${this.#pick(loopAttributes)} }}` : `{{ ${this.#name()} }}`),
      () => (this.#macros > 0 ? this.#call() : this.#data()),
    ];
    if (depth === 0) return this.#pick(simple)();
    return this.#pick([
      ...simple,
      () => this.#if(inner, isInLoop),
      () => this.#if(inner, isInLoop),
      () => this.#for(inner),
      () => this.#for(inner),
      () =>
        `${this.#open(`set ${this.#name()}${this.#pick(["", "", " | upper", " | trim | length"])}`)}${inner()}${this.#open("endset")}`,
      () =>
        `${this.#open(`with ${this.#name()} = ${this.#value()}, z = x`)}${inner()}${this.#open("endwith")}`,
      () =>
        `${this.#open(`filter ${this.#pick(["upper", "trim", "replace('a', 'b')", "indent(2)", "length"])}`)}${inner()}${this.#open("endfilter")}`,
      () => `${this.#open("generation")}${inner(false)}${this.#open("endgeneration")}`,
      () => this.#macro(inner),
      () =>
        this.#macros > 0
          ? `${this.#open(`call${this.#pick(["", "(y)", "(x, y=2)"])} ${this.#callee()}`)}${inner(false)}${this.#open("endcall")}`
          : this.#data(),
    ])();
  }
  #condition(isInLoop: boolean): string {
    return this.#pick([
      () => this.#name(),
      () => `${this.#name()} is defined`,
      () => `${this.#name()} == ${this.#pick(["1", "2", "'a'"])}`,
      () =>
        isInLoop ? this.#pick(["loop.first", "loop.last", "loop.index is even", "loop.changed(x)"]) : "true",
      () => this.expression(1),
    ])();
  }
  #if(inner: () => string, isInLoop: boolean): string {
    const elif = this.#chance(30) ? this.#open(`elif ${this.#condition(isInLoop)}`) + inner() : "";
    const otherwise = this.#chance(50) ? this.#open("else") + inner() : "";
    return this.#open(`if ${this.#condition(isInLoop)}`) + inner() + elif + otherwise + this.#open("endif");
  }
  #for(inner: (isInLoop?: boolean) => string): string {
    if (this.#chance(12))
      return `${this.#open("for t in tree recursive")}{{ t.v }}{{ loop.depth }}${this.#chance(70) ? "({{ loop(t.c) }})" : ""}${inner(true)}${this.#open("endfor")}`;
    const target = this.#pick(["x", "y", "x, y", "z"]);
    const items =
      target === "x, y"
        ? this.#pick(["d.items()", "[(1, 2), (3, 4)]", "pairs", "d|dictsort", "rows"])
        : this.#items();
    const test = this.#chance(25)
      ? ` if ${this.#pick([target.slice(0, 1), "x != 2", "y is defined", "ns.v"])}`
      : "";
    const otherwise = this.#chance(25) ? this.#open("else") + inner() : "";
    return this.#open(`for ${target} in ${items}${test}`) + inner(true) + otherwise + this.#open("endfor");
  }
  #macro(inner: (isInLoop?: boolean) => string): string {
    this.#macros += 1;
    const signature = this.#pick(["", "x", "x, y=1", "x=y, y=2", "z='a'"]);
    const extra = this.#pick([
      "",
      "",
      "{{ varargs }}",
      "{{ kwargs }}",
      "{{ caller() }}",
      "{{ caller(1) if caller else '-' }}",
    ]);
    return `${this.#open(`macro m${this.#macros}(${signature})`)}${extra}${inner(false)}${this.#open("endmacro")}`;
  }
  #callee(): string {
    return `m${1 + this.#next(this.#macros)}(${this.#pick(["", "1", "x, 2", "x=3", "1, 2, 3", "y=x", "*[1, 2]", "**{'x': 4}"])})`;
  }
  #call(): string {
    return `{{ ${this.#callee()} }}`;
  }
}

/** The variables of all these templates. */
export const fuzzVariables = {
  text: "It's a “test”,\n  𝟜 ok\n",
  n: 3,
  half: 0.5,
  words: ["b", "A", "c", "B", "a b"],
  floats: [1.5, -2.25, 3, 1.5e-10, 1e-7],
  d: { b: 2, a: 1, C: [1, 2], text: "x" },
  rows: [
    { k: "b", v: 2, t: { s: "y" } },
    { k: "A", v: 1 },
    { k: "a", v: null, t: { s: "x" } },
  ],
  pairs: [
    ["p", 1],
    ["q", 2],
  ],
  tree: [
    { v: 1, c: [{ v: 2, c: [] }] },
    { v: 3, c: [] },
  ],
  messages: [
    { role: "user", content: "Hi" },
    { role: "assistant", content: null },
  ],
  ns: "not a namespace",
};

const strings = [
  "''",
  "'abc'",
  "'Hello World'",
  "' a  b '",
  '"it\'s"',
  "'\"q\"'",
  "'Äßé'",
  "'𝟜x𝟜'",
  "'a,b,,c'",
  "'\\n x\\ny\\n'",
  "'12'",
  "'-3.5'",
  "' 7 '",
  "'1e3'",
  "'0x1f'",
  "'a\\tb'",
  "'<b>&'",
  "'abcabc'",
  "'one two three four'",
  "'ABC'",
  "'they''re'",
  "'x.y'",
  "'ǆ ﬁ İ'",
  "'\\u00e9\\x41\\101\\q'",
  "text",
  "words[0]",
  "'aΣ Σ'",
  "'\\u2028\\x85\\x1c'",
];
const numbers = [
  "0",
  "1",
  "-1",
  "2",
  "3",
  "7",
  "-7",
  "10",
  "255",
  "10**20",
  "-(10**18)",
  "9007199254740993",
  "0.5",
  "-2.5",
  "2.5",
  "1.0",
  "1e20",
  "1e-7",
  "123456.789",
  "1e16",
  "0.1",
  "3.14159",
  "1_000",
  "n",
  "half",
  "true",
  "0.125",
  "1e300",
  "-0.0",
];
const lists = [
  "[]",
  "[1, 2, 3]",
  "words",
  "floats",
  "rows",
  "pairs",
  "(1, 'a')",
  "()",
  "range(4)",
  "range(5, 0, -2)",
  "[none, true]",
  "[[1], [2, 3]]",
  "messages",
  "d.keys()",
  "d.items()",
  "d.values()",
];
const dicts = [
  "{}",
  "d",
  "{'a': 1}",
  "{'b': [1, 2.5], 'a': {'x': none}}",
  "{1: 'a', 2.5: true, none: 1}",
  "rows[0]",
  "messages[1]",
  "{'é': '\"\\n'}",
];
const loopAttributes = [
  "index",
  "index0",
  "revindex",
  "revindex0",
  "first",
  "last",
  "length",
  "depth",
  "depth0",
  "previtem",
  "nextitem",
  "cycle('a', 'b')",
  "changed(x)",
  "missing",
];

/** Filters: the kind of the value and of the arguments. */
const filters: Readonly<Record<string, readonly string[]>> = {
  abs: ["n"],
  attr: ["d", "'a'|'items'|'__class__'"],
  batch: ["l", "i", "any?"],
  capitalize: ["s"],
  center: ["s", "i?"],
  count: ["l"],
  d: ["any", "any?", "b?"],
  default: ["any", "any?", "b?"],
  dictsort: ["d", "b?", "'key'|'value'|'x'?", "b?"],
  first: ["l"],
  float: ["any", "n?"],
  format: ["'%s %s'|'%d'|'%(a)s'", "any?", "any?"],
  forceescape: ["any"],
  groupby: ["rows|pairs", "'k'|'v'|0|'t.s'|'missing'", "any?", "b?"],
  indent: ["s", "i?|'> '", "b?", "b?"],
  int: ["any", "n?", "10|16|0|2?"],
  items: ["d"],
  join: ["l", "s?", "'k'|0|'v'?"],
  last: ["l"],
  length: ["any"],
  list: ["any"],
  lower: ["any"],
  map: ["l", "'upper'|'length'|'string'|'first'|'missing'|'int'|'tojson'"],
  max: ["l", "b?", "'k'|'v'|0?"],
  min: ["l", "b?", "'k'|'v'|0?"],
  reject: ["l", "'none'|'string'|'odd'|'=='|'in'?", "any?"],
  rejectattr: ["rows|messages|pairs", "'k'|'v'|'content'|0", "'none'|'defined'|'=='|'string'?", "any?"],
  replace: ["s", "s", "s", "i?"],
  reverse: ["l"],
  round: ["n", "i?", "'common'|'ceil'|'floor'|'x'?"],
  safe: ["s"],
  select: ["l", "'none'|'string'|'odd'|'=='|'in'|'missing'?", "any?"],
  selectattr: ["rows|messages|pairs", "'k'|'v'|'content'|0|'t.s'", "'none'|'defined'|'=='|'string'?", "any?"],
  slice: ["l", "1|2|3|0", "any?"],
  sort: ["l", "b?", "b?", "'k'|'v'|0|'k,v'|'t.s'?"],
  string: ["any"],
  sum: ["l", "'v'|1?", "n?"],
  title: ["s"],
  tojson: ["any", "b?", "none|2|'--'|0?", "none|(',', ':')|('', '')?", "b?"],
  trim: ["s", "s?"],
  truncate: ["s", "5|8|20?", "b?", "'...'|''?", "0|2?"],
  unique: ["l", "b?", "'k'|0?"],
  upper: ["any"],
  wordcount: ["s"],
  e: ["any"],
  escape: ["s"],
};
const generators = new Set([
  "batch",
  "items",
  "map",
  "reject",
  "rejectattr",
  "reverse",
  "select",
  "selectattr",
  "slice",
  "unique",
]);
const range3 = ["i?", "i?"];
/** Methods: the kind of the object and of the arguments. */
const methods: Readonly<Record<string, readonly string[]>> = {
  capitalize: ["s"],
  casefold: ["s"],
  center: ["s", "i|9", "'*'|'é'|'ab'?"],
  count: ["s", "s", ...range3],
  endswith: ["s", "s", ...range3],
  expandtabs: ["s", "i?"],
  find: ["s", "s", ...range3],
  index: ["s", "s", ...range3],
  isalnum: ["s"],
  isalpha: ["s"],
  isascii: ["s"],
  isdecimal: ["s"],
  isdigit: ["s"],
  isidentifier: ["s"],
  islower: ["s"],
  isnumeric: ["s"],
  isprintable: ["s"],
  isspace: ["s"],
  istitle: ["s"],
  isupper: ["s"],
  join: ["s", "l"],
  ljust: ["s", "i|9", "'*'?"],
  lower: ["s"],
  lstrip: ["s", "s?"],
  partition: ["s", "s"],
  removeprefix: ["s", "s"],
  removesuffix: ["s", "s"],
  replace: ["s", "s", "s", "i?"],
  rfind: ["s", "s", ...range3],
  rindex: ["s", "s", ...range3],
  rjust: ["s", "i|9", "'*'?"],
  rpartition: ["s", "s"],
  rsplit: ["s", "none|' '|','|'a'?", "i?"],
  rstrip: ["s", "s?"],
  split: ["s", "none|' '|','|'a'|''?", "i?"],
  splitlines: ["s", "b?"],
  startswith: ["s", "s|('a', 'H')", ...range3],
  strip: ["s", "s?|none?"],
  swapcase: ["s"],
  title: ["s"],
  upper: ["s"],
  zfill: ["s", "i|9"],
  get: ["d", "'a'|'b'|1|none", "any?"],
  items: ["d"],
  keys: ["d"],
  values: ["d"],
  copy: ["d"],
  append: ["l", "any"],
  pop: ["d", "'a'"],
  update: ["d", "d"],
  is_integer: ["n"],
};
/** Tests: the kind of the value and of the arguments. */
const tests: Readonly<Record<string, readonly string[]>> = {
  boolean: ["any"],
  callable: ["any"],
  defined: ["any"],
  divisibleby: ["n", "n"],
  eq: ["any", "any"],
  equalto: ["any", "any"],
  escaped: ["any"],
  even: ["n"],
  false: ["any"],
  filter: ["s|'upper'|'nope'"],
  float: ["any"],
  ge: ["n", "n"],
  gt: ["s", "s"],
  greaterthan: ["n", "n"],
  in: ["any", "l"],
  integer: ["any"],
  iterable: ["any"],
  le: ["n", "n"],
  lower: ["any"],
  lt: ["any", "any"],
  lessthan: ["n", "n"],
  mapping: ["any"],
  ne: ["any", "any"],
  none: ["any"],
  number: ["any"],
  odd: ["n"],
  sameas: ["any", "true|false|none|1"],
  sequence: ["any"],
  string: ["any"],
  test: ["'odd'|'nope'"],
  true: ["any"],
  undefined: ["any"],
  upper: ["any"],
};
