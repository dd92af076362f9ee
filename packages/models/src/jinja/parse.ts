import { assignTo, assignedValue, checkNamespaces, noteTarget, type Target } from "./assignment.ts";
import { fail, unsupported } from "./errors.ts";
import { Loop } from "./loop.ts";
import { ExpressionParser, type Apply, type Code } from "./parse-expression.ts";
import { repr, str } from "./print.ts";
import { Output, Scope, type Run } from "./run.ts";
import { isTrue, iterate } from "./sequences.ts";
import { Callable, Iteration, Undefined, isText, typeName, type Keywords, type Value } from "./values.ts";

/** The word with which a statement ends the iteration of the loop around it. */
type Word = "break" | "continue" | undefined;
/** A compiled statement. */
type Step = (run: Run) => Word;

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

/** Variables that jinja2 sets in a macro that reads them. */
const special = ["caller", "kwargs", "varargs"];

/** Compiles a template while it is read. `hasGeneration` tells whether it has the tag `generation`. */
export function parse(source: string): { readonly run: Step; readonly hasGeneration: boolean } {
  const parser = new TemplateParser(source);
  const body = parser.body([]);
  const [unknown] = parser.unknown;
  if (unknown !== undefined) unsupported(unknown);
  return { run: (run) => body(parser.scope.enter(run)), hasGeneration: parser.hasGeneration };
}

class TemplateParser extends ExpressionParser {
  hasGeneration = false;
  /** Whether a loop contains the current statement, without a macro between them. */
  #isInLoop = false;
  #loops = 0;
  #macros = 0;

  /** Compiles statements until one of `ends`, whose token is next. */
  body(ends: readonly string[]): Step {
    const { stream } = this;
    const steps: Step[] = [];
    const write = (code: Code) => steps.push((run) => run.output.write(str(code(run))));
    while (!stream.is("eof")) {
      if (stream.is("data")) {
        const { value } = stream.next();
        write(() => value);
      } else if (stream.skipIf("variable_begin")) {
        write(this.tuple());
        stream.expect("variable_end");
      } else {
        stream.expect("block_begin");
        if (ends.length > 0 && stream.is(...ends)) break;
        steps.push(this.#statement());
        stream.expect("block_end");
      }
    }
    return (run) => {
      for (const step of steps) {
        const word = step(run);
        if (word !== undefined) return word;
      }
      return undefined;
    };
  }

  /** Compiles the body of a statement; the end tag is next. */
  #block(...ends: readonly string[]): Step {
    this.stream.skipIf(":");
    this.stream.expect("block_end");
    const body = this.body(ends.map((end) => `name:${end}`));
    if (this.stream.is("eof"))
      this.stream.fail(`expected ${ends.join(" or ")} before the end of the template`);
    return body;
  }

  #closedBlock(end: string): Step {
    const body = this.#block(end);
    this.stream.next();
    return body;
  }

  /** Reads a part of the template in a scope of its own. */
  #scoped<T>(parse: (scope: Scope) => T): T {
    const outer = this.scope;
    this.scope = new Scope(outer);
    const parsed = parse(this.scope);
    this.scope = outer;
    return parsed;
  }

  #within<T>(isInLoop: boolean, parse: () => T): T {
    const before = this.#isInLoop;
    this.#isInLoop = isInLoop;
    const parsed = parse();
    this.#isInLoop = before;
    return parsed;
  }

  #statement(): Step {
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
        return this.#scoped((scope) => this.#with(scope));
      case "macro": {
        const name = this.name();
        const make = this.#macro(name);
        this.scope.store(name);
        return (run) => run.variables.set(name, make(run));
      }
      case "generation": {
        // As in transformers, the block is a macro: what it assigns stays inside.
        const make = this.#macro(null);
        this.hasGeneration = true;
        return (run) => {
          const text = str(make(run).call([], new Map()));
          run.context.addGenerated(text);
          return writeText(run, text);
        };
      }
      case "filter": {
        const apply = this.#filterChain(this.filter());
        return this.#captured("endfilter", (text, run, inner) => writeText(run, apply(text, inner)));
      }
      case "break":
      case "continue":
        if (!this.#isInLoop) stream.fail(`'${tag}' outside loop`);
        return () => tag;
      default:
        return stream.fail(`Encountered unknown tag ${JSON.stringify(tag)}`);
    }
  }

  #for(): Step {
    const { stream } = this;
    const target = this.target(["name:in"]);
    stream.expect("name:in");
    const iterable = this.tuple({ withCondition: false, ends: ["name:recursive"] });
    const select = this.#scoped((scope) => {
      noteTarget(target, scope, true);
      const test = stream.skipIf("name:if") ? this.expression() : null;
      return test && ((items: Value, run: Run) => selected(target, test, items, scope.enter(run)));
    });
    if (stream.is("name:recursive")) unsupported("a recursive loop");
    this.#loops += 1;
    this.#checkLoopName(target);
    const [scope, body] = this.#scoped((scope) => {
      noteTarget(target, scope, true);
      return [scope, this.#within(true, () => this.#block("endfor", "else"))] as const;
    });
    const otherwise = this.#scoped((scope) => {
      if (stream.next().value === "endfor") return () => undefined;
      const step = this.#closedBlock("endfor");
      return (run: Run) => step(scope.enter(run));
    });
    this.#loops -= 1;
    return (run) => {
      const items = iterable(run);
      const loop = new Loop(select === null ? items : new Iteration(select(items, run)));
      let isCompleted = false;
      for (let item = loop.next(); item !== undefined; item = loop.next()) {
        const inner = scope.enter(run);
        inner.variables.set("loop", loop.variable);
        assignTo(target, item, inner.variables);
        const word = body(inner);
        if (word === "break") break;
        // As in jinja2, an iteration that `break` or `continue` ended does not count for `else`.
        isCompleted ||= word === undefined;
      }
      return isCompleted ? undefined : otherwise(run);
    };
  }

  #checkLoopName(target: Target): void {
    if ("items" in target) for (const item of target.items) this.#checkLoopName(item);
    else if (this.#loops > 0 && target.name === "loop" && target.attribute === undefined)
      this.stream.fail("Can't assign to special loop variable in for-loop target");
  }

  #if(): Step {
    const { length } = this.unknown;
    const test = this.tuple({ withCondition: false });
    const [body, otherwise] = this.scope.branch(() => {
      const body = this.#block("elif", "else", "endif");
      const end = this.stream.next().value;
      if (end === "elif") return [body, this.#if()];
      return [body, end === "else" ? this.#closedBlock("endif") : () => undefined];
    }) as [Step, Step];
    this.unknown.length = length;
    return (run) => (isTrue(test(run)) ? body : otherwise)(run);
  }

  #set(): Step {
    const target = this.target([], true);
    this.#checkLoopName(target);
    if (this.stream.skipIf("=")) {
      const value = this.tuple();
      noteTarget(target, this.scope, false);
      return (run) => {
        checkNamespaces(target, run.variables);
        return assignTo(target, value(run), run.variables);
      };
    }
    const apply = this.#filterChain((text) => text);
    noteTarget(target, this.scope, false);
    return this.#captured("endset", (text, run, inner) =>
      assignTo(target, apply(text, inner), run.variables),
    );
  }

  /** Reads the filters after a bar, each of which is applied to what those before it return. */
  #filterChain(first: Apply): Apply {
    let chain = first;
    while (this.stream.skipIf("|")) {
      const [before, apply] = [chain, this.filter()];
      chain = (text, run) => apply(before(text, run), run);
    }
    return chain;
  }

  /** Compiles a body, whose text is passed to `use`. */
  #captured(end: string, use: (text: string, run: Run, inner: Run) => void): Step {
    return this.#scoped((scope) => {
      const body = this.#closedBlock(end);
      return (run) => {
        const inner = { ...scope.enter(run), output: new Output() };
        const word = body(inner);
        if (word === undefined) use(inner.output.text, run, inner);
        return word;
      };
    });
  }

  #with(scope: Scope): Step {
    const assignments: { target: Target; value: Code }[] = [];
    while (!this.stream.is("block_end")) {
      if (assignments.length > 0) this.stream.expect(",");
      const target = this.target();
      this.stream.expect("=");
      assignments.push({ target, value: this.expression() });
      noteTarget(target, scope, true);
    }
    const body = this.#closedBlock("endwith");
    return (run) => {
      const inner = scope.enter(run);
      for (const { target, value } of assignments) assignTo(target, value(run), inner.variables);
      return body(inner);
    };
  }

  /** Reads the parameters and the body of a macro, or of a block without parameters if `name` is null. */
  #macro(name: string | null): (run: Run) => Callable {
    return this.#scoped((scope) => {
      const parameters = name === null ? [] : this.#parameters();
      this.#macros += 1;
      const body = this.#within(false, () => this.#closedBlock(name === null ? "endgeneration" : "endmacro"));
      this.#macros -= 1;
      const call = (defined: Run, args: readonly Value[], keywords: Keywords): string => {
        const run = { ...scope.enter(defined), output: new Output() };
        const bound = bindMacro(name, parameters, args, keywords);
        for (const [i, parameter] of parameters.entries()) run.variables.set(parameter.name, bound[i]);
        for (const [i, parameter] of parameters.entries())
          if (bound[i] === undefined) run.variables.set(parameter.name, parameter.byDefault(run));
        body(run);
        return run.output.text;
      };
      return (run) =>
        new Callable(
          "Macro",
          (args, keywords) => call(run, args, keywords),
          (attribute) =>
            attributes.includes(attribute) ? unsupported(`the attribute ${attribute} of a macro`) : undefined,
          () => `<Macro ${name === null ? "anonymous" : repr(name)}>`,
        );
    });
  }

  #parameters(): Parameter[] {
    const { stream } = this;
    const parameters: Parameter[] = [];
    let hasDefault = false;
    stream.expect("(");
    while (!stream.is(")")) {
      if (parameters.length > 0) stream.expect(",");
      const name = this.name();
      if (parameters.some((parameter) => name === parameter.name)) stream.fail(`duplicate argument ${name}`);
      this.scope.store(name, true);
      let byDefault: Code = () => new Undefined(`parameter ${repr(name)} was not provided`);
      if (stream.skipIf("=")) {
        byDefault = this.expression();
        hasDefault = true;
      } else if (hasDefault) stream.fail("non-default argument follows default argument");
      parameters.push({ name, byDefault });
    }
    stream.expect(")");
    return parameters;
  }

  override variable(name: string): Code {
    if (name === "self" && !this.scope.has(name)) unsupported("the variable self");
    if (this.#macros > 0 && special.includes(name)) unsupported(`the variable ${name} of a macro`);
    return super.variable(name);
  }
}

interface Parameter {
  readonly name: string;
  readonly byDefault: Code;
}

/** Writes a value that is not converted to a string. */
function writeText({ output }: Run, value: Value): undefined {
  output.write(isText(value) ? str(value) : fail(`expected str instance, ${typeName(value)} found`));
}

/** Yields the items for which the test of a loop is true, with tuples instead of other iterables. */
function* selected(target: Target, test: Code, items: Value, run: Run): Generator<Value> {
  for (const item of iterate(items)) {
    assignTo(target, item, run.variables);
    if (isTrue(test(run))) yield assignedValue(target, item);
  }
}

const attributes = ["name", "arguments", "catch_kwargs", "catch_varargs", "caller"];

function bindMacro(
  macro: string | null,
  parameters: readonly Parameter[],
  args: readonly Value[],
  keywords: Keywords,
): readonly (Value | undefined)[] {
  const rest = new Map(keywords);
  const values = parameters.map(({ name }, i) => {
    if (i < args.length) return args[i];
    const value = rest.get(name);
    rest.delete(name);
    return value;
  });
  const [unknown] = rest.keys();
  if (unknown !== undefined) fail(`macro ${repr(macro)} takes no keyword argument ${repr(unknown)}`);
  if (args.length > parameters.length)
    fail(`macro ${repr(macro)} takes not more than ${parameters.length} argument(s)`);
  return values;
}
