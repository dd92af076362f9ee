import {
  dicts,
  filters,
  generators,
  lists,
  loopAttributes,
  methods,
  numbers,
  strings,
  tests,
} from "./template-fuzz-parts.test-data.ts";

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
    const value = this.#pick([() => this.number(), () => this.#leaf(), () => `(${this.#leaf()},)`])();
    return this.#chance(80)
      ? `('[%${this.#pick(["s", "s", "d", "%", "5s", ".2f", "(a)s"])}]' % ${value})`
      : `('%s|%s|%d' % ${this.#pick(["{'a': 1}", "(1, 2)", "('a', {'a': 2}, 3)", "d"])})`;
  }
  #format(): string {
    const format = this.#pick([
      "[{}]",
      "[{}]",
      "{}{{}}{}",
      "{1}{0}{a}",
      "{0}{}",
      "{a}",
      "{:>5}",
      "{0.a}",
      "{!r}",
    ]);
    return `'${format}'.format(${this.#leaf()}, ${this.#leaf()}, a=${this.#leaf()})`;
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
    ])();
  }
  #condition(isInLoop: boolean): string {
    return this.#pick([
      () => this.#name(),
      () => `${this.#name()} is defined`,
      () => `${this.#name()} == ${this.#pick(["1", "2", "'a'"])}`,
      () => (isInLoop ? this.#pick(["loop.first", "loop.last", "loop.index is even"]) : "true"),
      () => this.expression(1),
    ])();
  }
  #if(inner: () => string, isInLoop: boolean): string {
    const elif = this.#chance(30) ? this.#open(`elif ${this.#condition(isInLoop)}`) + inner() : "";
    const otherwise = this.#chance(50) ? this.#open("else") + inner() : "";
    return this.#open(`if ${this.#condition(isInLoop)}`) + inner() + elif + otherwise + this.#open("endif");
  }
  #for(inner: (isInLoop?: boolean) => string): string {
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
    return `${this.#open(`macro m${this.#macros}(${signature})`)}${inner(false)}${this.#open("endmacro")}`;
  }
  #callee(): string {
    return `m${1 + this.#next(this.#macros)}(${this.#pick(["", "1", "x, 2", "x=3", "1, 2, 3", "y=x"])})`;
  }
  #call(): string {
    return `{{ ${this.#callee()} }}`;
  }
}
