import { calculate, signed, type Operator } from "./arithmetic.ts";
import type { Target } from "./assignment.ts";
import { getAttribute, getItem } from "./attributes.ts";
import { comparisons, type Comparison } from "./compare.ts";
import { unsupported } from "./errors.ts";
import { filterOf, testOf } from "./filters.ts";
import { callValue } from "./globals.ts";
import { TokenStream, describe, matches } from "./lexer.ts";
import { str } from "./print.ts";
import { Scope, type Run } from "./run.ts";
import { isTrue, slice } from "./sequences.ts";
import { Dict, Tuple, Undefined, orElse, type Call, type Keywords, type Value } from "./values.ts";

/** A compiled expression. */
export type Code = (run: Run) => Value;
/** A compiled filter or test, with its arguments. */
export type Apply = (value: Value, run: Run) => Value;
type Arguments = (run: Run) => [Value[], Keywords];
type Slice = readonly [start: Code | null, stop: Code | null, step: Code | null];

const constants: Readonly<Record<string, boolean | null>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
};
const noArguments: Arguments = () => [[], new Map()];

const constant =
  (value: Value): Code =>
  () =>
    value;

/** Compiles the expressions of a template, with jinja2's precedence, while it reads them. */
export class ExpressionParser {
  readonly stream: TokenStream;
  /** The scope of the current statement. */
  scope = new Scope(null);
  /** Filters and tests that do not exist. One in a branch, which may not run, is an error only if it runs. */
  readonly unknown: string[] = [];

  constructor(source: string) {
    this.stream = new TokenStream(source);
  }

  expression(withCondition = true): Code {
    return withCondition ? this.#conditional() : this.#or();
  }

  #conditional(): Code {
    const { length } = this.unknown;
    let node = this.#or();
    while (this.stream.skipIf("name:if")) {
      const [yes, test] = [node, this.#or()];
      const no = this.stream.skipIf("name:else") ? this.#conditional() : null;
      const missing = "the inline if-expression evaluated to false and no else section was defined.";
      node = (run) => (isTrue(test(run)) ? yes(run) : no === null ? new Undefined(missing) : no(run));
      this.unknown.length = length;
    }
    return node;
  }

  #or(): Code {
    return this.#logical("or", () => this.#logical("and", () => this.#not()));
  }

  #logical(operator: "or" | "and", operand: () => Code): Code {
    let node = operand();
    while (this.stream.skipIf(`name:${operator}`)) {
      const [left, right] = [node, operand()];
      node = (run) => {
        const value = left(run);
        return isTrue(value) === (operator === "and") ? right(run) : value;
      };
    }
    return node;
  }

  #not(): Code {
    if (!this.stream.skipIf("name:not")) return this.#comparison();
    const node = this.#not();
    return (run) => !isTrue(node(run));
  }

  #comparison(): Code {
    const { stream } = this;
    const first = this.#sum();
    const operands: { compares: (typeof comparisons)[Comparison]; code: Code }[] = [];
    for (;;) {
      let operator = stream.current.value;
      if (stream.is("name:not") && matches(stream.look(), ["name:in"])) {
        stream.next();
        operator = "not in";
      } else if (!Object.hasOwn(comparisons, operator)) break;
      stream.next();
      operands.push({ compares: comparisons[operator as Comparison], code: this.#sum() });
    }
    if (operands.length === 0) return first;
    return (run) => {
      let left = first(run);
      return operands.every(({ compares, code }) => {
        const right = code(run);
        const isSo = compares(left, right);
        left = right;
        return isSo;
      });
    };
  }

  #binary(operators: readonly string[], operand: () => Code): Code {
    let node = operand();
    while (operators.includes(this.stream.current.value)) {
      const operator = this.stream.next().value as Operator;
      const [left, right] = [node, operand()];
      node = (run) => calculate(left(run), operator, right(run));
    }
    return node;
  }

  #sum(): Code {
    return this.#binary(["+", "-"], () => this.#concatenation());
  }

  #concatenation(): Code {
    const nodes = [this.#product()];
    while (this.stream.skipIf("~")) nodes.push(this.#product());
    return nodes.length === 1 ? nodes[0]! : (run) => nodes.map((code) => str(code(run))).join("");
  }

  #product(): Code {
    return this.#binary(["*", "/", "//", "%"], () => this.#power());
  }

  #power(): Code {
    const operand = this.#unary();
    if (this.stream.is("**")) unsupported("the operator **");
    return operand;
  }

  #unary(withFilter = true): Code {
    const { stream } = this;
    let node: Code;
    if (stream.is("-", "+")) {
      const operator = stream.next().type as "-" | "+";
      const operand = this.#unary(false);
      node = (run) => signed(operator, operand(run));
    } else node = this.#primary();
    node = this.#postfix(node);
    return withFilter ? this.#filters(node) : node;
  }

  #primary(): Code {
    const { stream } = this;
    const token = stream.current;
    switch (token.type) {
      case "name":
        stream.next();
        return Object.hasOwn(constants, token.value)
          ? constant(constants[token.value]!)
          : this.variable(token.value);
      case "string": {
        let value = "";
        while (stream.is("string")) value += stream.next().constant as string;
        return constant(value);
      }
      case "integer":
      case "float":
        return constant(stream.next().constant);
      case "(": {
        stream.next();
        const node = this.tuple({ isParenthesized: true });
        stream.expect(")");
        return node;
      }
      case "[": {
        const items: Code[] = [];
        this.#separated("[", "]", () => items.push(this.expression()));
        return (run) => items.map((item) => item(run));
      }
      case "{": {
        const items: (readonly [Code, Code])[] = [];
        this.#separated("{", "}", () => {
          const key = this.expression();
          stream.expect(":");
          items.push([key, this.expression()]);
        });
        return (run) => new Dict(items.map(([key, value]) => [key(run), value(run)] as const));
      }
      default:
        return stream.fail(`unexpected ${describe(token)}`);
    }
  }

  /** Reads a variable. */
  variable(name: string): Code {
    this.scope.load(name);
    return ({ variables }) => orElse(variables.get(name), () => new Undefined(`'${name}' is undefined`));
  }

  /** Compiles an expression, or a tuple of expressions that are separated by commas. */
  tuple({
    withCondition = true,
    isParenthesized = false,
    ends = [],
  }: {
    readonly withCondition?: boolean;
    readonly isParenthesized?: boolean;
    readonly ends?: readonly string[];
  } = {}): Code {
    const { stream } = this;
    const items: Code[] = [];
    let isTuple = false;
    for (;;) {
      if (items.length > 0) stream.expect(",");
      if (stream.is("variable_end", "block_end", ")", ...ends)) break;
      items.push(this.expression(withCondition));
      if (!stream.is(",")) break;
      isTuple = true;
    }
    if (!isTuple) {
      if (items.length > 0) return items[0]!;
      if (!isParenthesized) stream.fail(`Expected an expression, got ${describe(stream.current)}`);
    }
    return (run) => new Tuple(items.map((item) => item(run)));
  }

  /** Reads what is assigned to: a name, a tuple, or with `withNamespace` an attribute of a namespace. */
  target(ends: readonly string[] = [], withNamespace = false): Target {
    const { stream } = this;
    const items: Target[] = [];
    let isTuple = false;
    while (!(isTuple && stream.is("variable_end", "block_end", ")", ...ends))) {
      if (stream.skipIf("(")) {
        items.push(this.target());
        stream.expect(")");
      } else {
        const name = this.name();
        const isOfNamespace = withNamespace && stream.skipIf(".");
        items.push(isOfNamespace ? { name, attribute: stream.expect("name").value } : { name });
      }
      if (!stream.skipIf(",")) break;
      isTuple = true;
    }
    return isTuple ? { items } : items[0]!;
  }

  /** Reads a name that is not a constant. */
  name(): string {
    const { value } = this.stream.expect("name");
    return Object.hasOwn(constants, value) ? this.stream.fail(`can't assign to ${value}`) : value;
  }

  /** Reads items that are separated by commas, the last of which may have one too, between an opening and a closing token. */
  #separated(open: string, close: string, parse: () => void): void {
    const { stream } = this;
    stream.expect(open);
    for (let isFirst = true; !stream.is(close); isFirst = false) {
      if (!isFirst) stream.expect(",");
      if (stream.is(close)) break;
      parse();
    }
    stream.expect(close);
  }

  #postfix(start: Code): Code {
    let node = start;
    for (;;) {
      if (this.stream.is(".", "[")) node = this.#subscript(node);
      else if (this.stream.is("(")) node = this.#call(node);
      else return node;
    }
  }

  #filters(start: Code): Code {
    let node = start;
    for (;;) {
      const value = node;
      if (this.stream.is("(")) {
        node = this.#call(node);
        continue;
      }
      let apply: Apply;
      if (this.stream.skipIf("|")) apply = this.filter();
      else if (this.stream.skipIf("name:is")) apply = this.#test();
      else return node;
      node = (run) => apply(value(run), run);
    }
  }

  #subscript(object: Code): Code {
    const { stream } = this;
    if (stream.next().type === ".") {
      const token = stream.next();
      if (token.type === "name") return (run) => getAttribute(object(run), token.value);
      if (token.type !== "integer") stream.fail("expected name or number");
      return (run) => getItem(object(run), token.constant);
    }
    const keys: (Code | Slice)[] = [];
    while (!stream.is("]")) {
      if (keys.length > 0) stream.expect(",");
      keys.push(this.#subscribed());
    }
    stream.expect("]");
    const [key] = keys;
    if (keys.length === 1 && typeof key === "object") {
      const [start, stop, step] = key;
      return (run) => slice(object(run), start?.(run), stop?.(run), step?.(run));
    }
    const codes = keys.map((each) => (typeof each === "object" ? unsupported("a slice in a tuple") : each));
    return (run) => {
      const items = codes.map((code) => code(run));
      return getItem(object(run), items.length === 1 ? items[0]! : new Tuple(items));
    };
  }

  #subscribed(): Code | Slice {
    const { stream } = this;
    const bound = () => (stream.is(":", "]", ",") ? null : this.expression());
    const start = bound();
    if (!stream.skipIf(":")) return start ?? this.expression();
    const stop = bound();
    return [start, stop, stream.skipIf(":") ? bound() : null];
  }

  #call(callee: Code): Code {
    const evaluate = this.#arguments();
    return (run) => callValue(callee(run), ...evaluate(run));
  }

  #arguments(): Arguments {
    const { stream } = this;
    const args: Code[] = [];
    const keywords = new Map<string, Code>();
    this.#separated("(", ")", () => {
      if (stream.is("*", "**")) unsupported("* or ** in a call");
      if (stream.is("name") && stream.look().type === "=") {
        const key = stream.next().value;
        stream.next();
        if (keywords.has(key)) stream.fail(`keyword argument ${key} repeated`);
        keywords.set(key, this.expression());
      } else {
        if (keywords.size > 0) stream.fail("invalid syntax for function call expression");
        args.push(this.expression());
      }
    });
    return (run) => [
      args.map((arg) => arg(run)),
      new Map([...keywords].map(([key, value]) => [key, value(run)])),
    ];
  }

  #dottedName(): string {
    let name = this.stream.expect("name").value;
    while (this.stream.skipIf(".")) name += `.${this.stream.expect("name").value}`;
    return name;
  }

  /** Reads the name and the arguments of a filter. */
  filter(): Apply {
    const name = this.#dottedName();
    return this.#applied(filterOf(name), `the filter ${name}`, this.#optionalArguments());
  }

  #optionalArguments = (): Arguments => (this.stream.is("(") ? this.#arguments() : noArguments);

  #applied(call: Call | undefined, what: string, evaluate: Arguments): Apply {
    if (call === undefined) {
      this.unknown.push(what);
      return () => unsupported(what);
    }
    return (value, run) => {
      const [args, keywords] = evaluate(run);
      return call([value, ...args], keywords);
    };
  }

  #test(): Apply {
    const { stream } = this;
    const isNegated = stream.skipIf("name:not");
    const name = this.#dottedName();
    let evaluate = this.#optionalArguments();
    if (
      evaluate === noArguments &&
      stream.is("name", "string", "integer", "float", "[", "{") &&
      !stream.is("name:else", "name:or", "name:and")
    ) {
      if (stream.is("name:is")) stream.fail("You cannot chain multiple tests with is");
      const arg = this.#postfix(this.#primary());
      evaluate = (run) => [[arg(run)], new Map()];
    }
    const apply = this.#applied(testOf(name), `the test ${name}`, evaluate);
    return isNegated ? (value, run) => !isTrue(apply(value, run)) : apply;
  }
}
