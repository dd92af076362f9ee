import { unsupported } from "./errors.ts";
import type { Body, Expression, Filter, If, Macro, Name, Statement, Target } from "./nodes.ts";
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
  return new TemplateParser(source).template();
}

class TemplateParser extends ExpressionParser {
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
        return this.#macro();
      case "generation":
        return macro("Generation", { body: this.#closedBlock("endgeneration") });
      case "filter": {
        const filter = this.filter(null, true) as Filter;
        return { type: "FilterBlock", body: this.#closedBlock("endfilter"), filter };
      }
      case "break":
        return { type: "Break" };
      case "continue":
        return { type: "Continue" };
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
    const body = this.#block("endfor", "else");
    const otherwise = stream.next().value === "endfor" ? [] : this.#closedBlock("endfor");
    return { type: "For", target, iterable, body, otherwise, test };
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

  #macro(): Statement {
    const { name } = this.name("store");
    const signature = this.#signature();
    return macro("Macro", { name, ...signature, body: this.#closedBlock("endmacro") });
  }
}

function macro(type: Macro["type"], parts: Partial<Macro>): Macro {
  return { type, name: null, args: [], defaults: [], body: [], ...parts };
}
