import { unsupported } from "./errors.ts";
import { functionOf } from "./evaluate.ts";
import {
  childrenOf,
  nodesIn,
  type Body,
  type Expression,
  type Filter,
  type For,
  type If,
  type Macro,
  type Name,
  type Node,
  type Statement,
  type Target,
} from "./nodes.ts";
import { ExpressionParser } from "./parse-expression.ts";

const unsupportedTags = new Set([
  "autoescape",
  "block",
  "call",
  "extends",
  "from",
  "import",
  "include",
  "print",
]);

/** Parses a template into its statements. */
export function parse(source: string): Body {
  const body = new TemplateParser(source).template();
  if (undeclared(body, ["self"]) !== undefined) unsupported("the variable self");
  body.forEach(checkFilters);
  return body;
}

/** Refuses filters and tests that do not exist, except in branches, which may not run. */
function checkFilters(node: Node): void {
  if (node.type === "If" || node.type === "Conditional") return;
  if (node.type === "Filter" || node.type === "Test") functionOf(node);
  for (const child of childrenOf(node)) checkFilters(child);
}

/** Variables that jinja2 sets in a macro that reads them. */
const special = ["caller", "kwargs", "varargs"];

class TemplateParser extends ExpressionParser {
  /** Whether a loop contains the current statement, without a macro between them. */
  #isInLoop = false;

  template(): Body {
    return this.#body([]);
  }

  /** Parses statements until one of `ends`, whose token is next. */
  #body(ends: readonly string[]): Statement[] {
    const { stream } = this;
    const body: Statement[] = [];
    let output: Expression[] = [];
    const flush = () => {
      if (output.length > 0) body.push({ type: "Output", nodes: output });
      output = [];
    };
    while (!stream.is("eof")) {
      if (stream.is("data")) output.push({ type: "TemplateData", data: stream.next().value });
      else if (stream.skipIf("variable_begin")) {
        output.push(this.tuple());
        stream.expect("variable_end");
      } else {
        flush();
        stream.expect("block_begin");
        if (ends.length > 0 && stream.is(...ends)) return body;
        body.push(this.#statement());
        stream.expect("block_end");
      }
    }
    flush();
    return body;
  }

  /** Parses the body of a statement; the end tag is next. */
  #block(...ends: readonly string[]): Statement[] {
    this.stream.skipIf(":");
    this.stream.expect("block_end");
    const body = this.#body(ends.map((end) => `name:${end}`));
    if (this.stream.is("eof"))
      this.stream.fail(`expected ${ends.join(" or ")} before the end of the template`);
    return body;
  }

  #closedBlock(end: string): Statement[] {
    const body = this.#block(end);
    this.stream.next();
    return body;
  }

  #within<T>(isInLoop: boolean, parse: () => T): T {
    const before = this.#isInLoop;
    this.#isInLoop = isInLoop;
    const parsed = parse();
    this.#isInLoop = before;
    return parsed;
  }

  #statement(): Statement {
    const { stream } = this;
    const tag = stream.is("name") ? stream.next().value : stream.fail("tag name expected");
    if (unsupportedTags.has(tag)) unsupported(`the tag ${tag}`);
    switch (tag) {
      case "for":
        return this.#for();
      case "if":
        return this.#if();
      case "set":
        return this.#set();
      case "with":
        return this.#with();
      case "macro":
        return this.#macro("Macro", { name: this.name("store").name, ...this.#signature() });
      case "generation":
        return this.#macro("Generation", { name: null, args: [], defaults: [] });
      case "filter": {
        const filter = this.filter(null, true) as Filter;
        return { type: "FilterBlock", body: this.#closedBlock("endfilter"), filter };
      }
      case "break":
      case "continue":
        if (!this.#isInLoop) stream.fail(`'${tag}' outside loop`);
        return { type: tag === "break" ? "Break" : "Continue" };
      default:
        return stream.fail(`Encountered unknown tag ${JSON.stringify(tag)}`);
    }
  }

  #for(): Statement {
    const { stream } = this;
    const target = this.target("store", { ends: ["name:in"] });
    stream.expect("name:in");
    const iterable = this.tuple({ withCondition: false, ends: ["name:recursive"] });
    const test = stream.skipIf("name:if") ? this.expression() : null;
    if (stream.is("name:recursive")) unsupported("a recursive loop");
    const body = this.#within(true, () => this.#block("endfor", "else"));
    const otherwise = stream.next().value === "endfor" ? [] : this.#closedBlock("endfor");
    const loop: For = { type: "For", target, iterable, body, otherwise, test };
    for (const node of nodesIn(loop))
      if (node.type === "Name" && node.name === "loop" && node.context === "store")
        stream.fail("Can't assign to special loop variable in for-loop target");
    return loop;
  }

  #if(): Statement {
    const branches: { test: Expression; body: Body }[] = [];
    for (;;) {
      const test = this.tuple({ withCondition: false });
      branches.push({ test, body: this.#block("elif", "else", "endif") });
      const end = this.stream.next().value;
      if (end === "elif") continue;
      const otherwise = end === "else" ? this.#closedBlock("endif") : [];
      const [first, ...rest] = branches.map((branch): If => ({
        type: "If",
        ...branch,
        elifs: [],
        otherwise: [],
      }));
      return { ...first!, elifs: rest, otherwise };
    }
  }

  #set(): Statement {
    const target = this.target("store", { withNamespace: true });
    if (this.stream.skipIf("=")) return { type: "Assign", target, node: this.tuple() };
    const filter = this.filter(null) as Filter | null;
    return { type: "AssignBlock", target, filter, body: this.#closedBlock("endset") };
  }

  #with(): Statement {
    const targets: Target[] = [];
    const values: Expression[] = [];
    while (!this.stream.is("block_end")) {
      if (targets.length > 0) this.stream.expect(",");
      targets.push(this.target("param"));
      this.stream.expect("=");
      values.push(this.expression());
    }
    return { type: "With", targets, values, body: this.#closedBlock("endwith") };
  }

  #signature(): { args: Name[]; defaults: Expression[] } {
    const { stream } = this;
    const args: Name[] = [];
    const defaults: Expression[] = [];
    stream.expect("(");
    while (!stream.is(")")) {
      if (args.length > 0) stream.expect(",");
      const arg = this.name("param");
      if (args.some(({ name }) => name === arg.name)) stream.fail(`duplicate argument ${arg.name}`);
      args.push(arg);
      if (stream.skipIf("=")) defaults.push(this.expression());
      else if (defaults.length > 0) stream.fail("non-default argument follows default argument");
    }
    stream.expect(")");
    return { args, defaults };
  }

  #macro(type: Macro["type"], signature: Pick<Macro, "name" | "args" | "defaults">): Statement {
    const body = this.#within(false, () => this.#closedBlock(`end${type.toLowerCase()}`));
    const read = undeclared(body, special);
    if (read !== undefined) unsupported(`the variable ${read} of a macro`);
    return { type, ...signature, body };
  }
}

/** Returns the first of `names` that nodes read before they assign it. */
function undeclared(nodes: Iterable<Node>, names: readonly string[]): string | undefined {
  const assigned = new Set<string>();
  for (const root of nodes)
    for (const node of nodesIn(root)) {
      if (node.type !== "Name" || !names.includes(node.name) || assigned.has(node.name)) continue;
      if (node.context === "load") return node.name;
      assigned.add(node.name);
    }
  return undefined;
}
