import { comparisons, type Comparison } from "./compare.ts";
import type { Arguments, Expression, Filter, Keyword, Operand, Pair, Target } from "./nodes.ts";
import { unsupported } from "./errors.ts";
import { describe, matches, TokenStream } from "./lexer.ts";

const constants: Readonly<Record<string, boolean | null>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
};
const noArguments: Arguments = { args: [], keywords: [] };

type BinaryOperator = Extract<Expression, { type: "Binary" }>["operator"];

/** Parses the expressions of a template, with jinja2's precedence. */
export class ExpressionParser {
  readonly stream: TokenStream;

  constructor(source: string) {
    this.stream = new TokenStream(source);
  }

  expression(withCondition = true): Expression {
    return withCondition ? this.#conditional() : this.#or();
  }

  #conditional(): Expression {
    let node = this.#or();
    while (this.stream.skipIf("name:if")) {
      const test = this.#or();
      const no = this.stream.skipIf("name:else") ? this.#conditional() : null;
      node = { type: "Conditional", test, yes: node, no };
    }
    return node;
  }

  #or(): Expression {
    return this.#binary(["or"], () => this.#and());
  }

  #and(): Expression {
    return this.#binary(["and"], () => this.#not());
  }

  #not(): Expression {
    if (this.stream.skipIf("name:not")) return { type: "Unary", operator: "not", node: this.#not() };
    return this.#comparison();
  }

  #comparison(): Expression {
    const { stream } = this;
    const expression = this.#sum();
    const operands: Operand[] = [];
    for (;;) {
      let operator = stream.current.value;
      if (stream.is("name:not") && matches(stream.look(), ["name:in"])) {
        stream.next();
        operator = "not in";
      } else if (!Object.hasOwn(comparisons, operator)) break;
      stream.next();
      operands.push({ type: "Operand", operator: operator as Comparison, expression: this.#sum() });
    }
    return operands.length === 0 ? expression : { type: "Compare", expression, operands };
  }

  #binary(operators: readonly string[], operand: () => Expression): Expression {
    let left = operand();
    while (operators.includes(this.stream.current.value)) {
      const operator = this.stream.next().value as BinaryOperator;
      left = { type: "Binary", left, operator, right: operand() };
    }
    return left;
  }

  #sum(): Expression {
    return this.#binary(["+", "-"], () => this.#concatenation());
  }

  #concatenation(): Expression {
    const nodes = [this.#product()];
    while (this.stream.skipIf("~")) nodes.push(this.#product());
    return nodes.length === 1 ? nodes[0]! : { type: "Concat", nodes };
  }

  #product(): Expression {
    return this.#binary(["*", "/", "//", "%"], () => this.#power());
  }

  #power(): Expression {
    const operand = this.#unary();
    if (this.stream.is("**")) unsupported("the operator **");
    return operand;
  }

  #unary(withFilter = true): Expression {
    const { stream } = this;
    let node: Expression;
    if (stream.is("-", "+")) {
      const operator = stream.next().type as "-" | "+";
      node = { type: "Unary", operator, node: this.#unary(false) };
    } else node = this.primary();
    node = this.#postfix(node);
    return withFilter ? this.#filters(node) : node;
  }

  /** Parses a name or literal; `withNamespace` also an attribute of a namespace as a target. */
  primary(withNamespace = false): Expression {
    const { stream } = this;
    const token = stream.current;
    switch (token.type) {
      case "name":
        stream.next();
        if (Object.hasOwn(constants, token.value)) return { type: "Const", value: constants[token.value]! };
        if (withNamespace && stream.skipIf("."))
          return { type: "NamespaceName", name: token.value, attribute: stream.expect("name").value };
        return { type: "Name", name: token.value, context: "load" };
      case "string": {
        let value = "";
        while (stream.is("string")) value += stream.next().constant as string;
        return { type: "Const", value };
      }
      case "integer":
      case "float":
        return { type: "Const", value: stream.next().constant };
      case "(": {
        stream.next();
        const node = this.tuple({ isParenthesized: true });
        stream.expect(")");
        return node;
      }
      case "[":
        return this.#list();
      case "{":
        return this.#dict();
      default:
        return stream.fail(`unexpected ${describe(token)}`);
    }
  }

  /** Parses an expression, or a tuple of expressions that are separated by commas. */
  tuple({
    isSimple = false,
    withCondition = true,
    withNamespace = false,
    isParenthesized = false,
    ends = [],
  }: {
    readonly isSimple?: boolean;
    readonly withCondition?: boolean;
    readonly withNamespace?: boolean;
    readonly isParenthesized?: boolean;
    readonly ends?: readonly string[];
  } = {}): Expression {
    const { stream } = this;
    const items: Expression[] = [];
    let isTuple = false;
    for (;;) {
      if (items.length > 0) stream.expect(",");
      if (stream.is("variable_end", "block_end", ")", ...ends)) break;
      items.push(isSimple ? this.primary(withNamespace) : this.expression(withCondition));
      if (!stream.is(",")) break;
      isTuple = true;
    }
    if (!isTuple) {
      if (items.length > 0) return items[0]!;
      if (!isParenthesized) stream.fail(`Expected an expression, got ${describe(stream.current)}`);
    }
    return { type: "Tuple", items };
  }

  /** Parses what is assigned to, and marks its names. */
  target(
    context: "store" | "param",
    options: { withNamespace?: boolean; ends?: readonly string[] } = {},
  ): Target {
    return this.#asTarget(this.tuple({ isSimple: true, ...options }), context);
  }

  name(context: "store" | "param"): Extract<Target, { type: "Name" }> {
    return this.#asTarget(
      { type: "Name", name: this.stream.expect("name").value, context: "load" },
      context,
    ) as Extract<Target, { type: "Name" }>;
  }

  #asTarget(node: Expression, context: "store" | "param"): Target {
    if (node.type === "NamespaceName") return node;
    if (node.type === "Name" && !Object.hasOwn(constants, node.name)) return { ...node, context };
    if (node.type === "Tuple")
      return { type: "Tuple", items: node.items.map((item) => this.#asTarget(item, context)) };
    return this.stream.fail(`can't assign to ${node.type === "Name" ? node.name : node.type.toLowerCase()}`);
  }

  /** Parses items that are separated by commas, the last of which may have one too, between an opening and a closing token. */
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

  #list(): Expression {
    const items: Expression[] = [];
    this.#separated("[", "]", () => items.push(this.expression()));
    return { type: "List", items };
  }

  #dict(): Expression {
    const items: Pair[] = [];
    this.#separated("{", "}", () => {
      const key = this.expression();
      this.stream.expect(":");
      items.push({ type: "Pair", key, value: this.expression() });
    });
    return { type: "Dict", items };
  }

  #postfix(start: Expression): Expression {
    let node = start;
    for (;;) {
      if (this.stream.is(".", "[")) node = this.#subscript(node);
      else if (this.stream.is("(")) node = this.#call(node);
      else return node;
    }
  }

  #filters(start: Expression): Expression {
    let node = start;
    for (;;) {
      if (this.stream.is("|")) node = this.filter(node)!;
      else if (this.stream.is("name:is")) node = this.#test(node);
      else if (this.stream.is("(")) node = this.#call(node);
      else return node;
    }
  }

  #subscript(node: Expression): Expression {
    const { stream } = this;
    if (stream.next().type === ".") {
      const token = stream.next();
      if (token.type === "name") return { type: "GetAttribute", node, attribute: token.value };
      if (token.type !== "integer") stream.fail("expected name or number");
      return { type: "GetItem", node, key: { type: "Const", value: token.constant } };
    }
    const keys: Expression[] = [];
    while (!stream.is("]")) {
      if (keys.length > 0) stream.expect(",");
      keys.push(this.#subscribed());
    }
    stream.expect("]");
    return { type: "GetItem", node, key: keys.length === 1 ? keys[0]! : { type: "Tuple", items: keys } };
  }

  #subscribed(): Expression {
    const { stream } = this;
    const bound = () => (stream.is(":", "]", ",") ? null : this.expression());
    const start = bound();
    if (!stream.skipIf(":")) return start ?? this.expression();
    const stop = bound();
    return { type: "Slice", start, stop, step: stream.skipIf(":") ? bound() : null };
  }

  #call(node: Expression): Expression {
    return { type: "Call", node, ...this.#arguments() };
  }

  #arguments(): Arguments {
    const { stream } = this;
    const args: Expression[] = [];
    const keywords: Keyword[] = [];
    this.#separated("(", ")", () => {
      if (stream.is("*", "**")) unsupported("* or ** in a call");
      if (stream.is("name") && stream.look().type === "=") {
        const key = stream.next().value;
        stream.next();
        if (keywords.some((keyword) => keyword.key === key)) stream.fail(`keyword argument ${key} repeated`);
        keywords.push({ type: "Keyword", key, value: this.expression() });
      } else {
        if (keywords.length > 0) stream.fail("invalid syntax for function call expression");
        args.push(this.expression());
      }
    });
    return { args, keywords };
  }

  #dottedName(): string {
    let name = this.stream.expect("name").value;
    while (this.stream.skipIf(".")) name += `.${this.stream.expect("name").value}`;
    return name;
  }

  /** Parses filters of a node; `isInline`: the first without a bar. Returns `start` if there is no filter. */
  filter(start: Expression | null, isInline = false): Filter | Expression | null {
    let node = start;
    for (let isFirst = isInline; isFirst || this.stream.is("|"); isFirst = false) {
      if (!isFirst) this.stream.next();
      const name = this.#dottedName();
      node = { type: "Filter", node, name, ...(this.stream.is("(") ? this.#arguments() : noArguments) };
    }
    return node;
  }

  #test(node: Expression): Expression {
    const { stream } = this;
    stream.next();
    const isNegated = stream.skipIf("name:not");
    const name = this.#dottedName();
    let call = noArguments;
    if (stream.is("(")) call = this.#arguments();
    else if (
      stream.is("name", "string", "integer", "float", "[", "{") &&
      !stream.is("name:else", "name:or", "name:and")
    ) {
      if (stream.is("name:is")) stream.fail("You cannot chain multiple tests with is");
      call = { ...noArguments, args: [this.#postfix(this.primary())] };
    }
    const test: Filter = { type: "Test", node, name, ...call };
    return isNegated ? { type: "Unary", operator: "not", node: test } : test;
  }
}
