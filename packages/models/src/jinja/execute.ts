import { assignTo, assignedValue, checkNamespaces } from "./assignment.ts";
import { fail, unsupported } from "./errors.ts";
import { applyFilter, evaluate } from "./evaluate.ts";
import { Loop } from "./loop.ts";
import type { Body, Expression, For, Macro, Statement } from "./nodes.ts";
import { str, repr } from "./print.ts";
import { Output, enter, type Run } from "./run.ts";
import { isTrue, iterate } from "./sequences.ts";
import { isText, typeName, type Value, Callable, Iteration, Undefined, type Keywords } from "./values.ts";

/** The word with which a statement ends the iteration of the loop around it. */
type Word = "break" | "continue" | undefined;

export function execute(body: Body, run: Run): Word {
  for (const statement of body) {
    const word = executeStatement(statement, run);
    if (word !== undefined) return word;
  }
  return undefined;
}

function executeStatement(node: Statement, run: Run): Word {
  const { variables, output, scope } = run;
  switch (node.type) {
    case "Output":
      for (const each of node.nodes) output.write(str(evaluate(each, run)));
      return undefined;
    case "If": {
      const branch = [node, ...node.elifs].find(({ test }) => isTrue(evaluate(test, run)));
      return execute(branch?.body ?? node.otherwise, run);
    }
    case "For":
      return executeLoop(node, run);
    case "Macro":
      return void variables.set(node.name!, macroOf(node, run));
    case "Generation": {
      // As in transformers, the block is a macro: what it assigns stays inside.
      const text = str(macroOf(node, run).call([], new Map()));
      run.context.addGenerated(text);
      return writeText(run, text);
    }
    case "FilterBlock": {
      const inner = enter(run, scope.inner(node, [], [...node.body, node.filter]));
      return capture(node.body, inner, (text) => writeText(run, applyFilters(node.filter, text, inner)));
    }
    case "With": {
      const inner = enter(run, scope.inner(node, [], [...node.targets, ...node.body]));
      for (const [i, target] of node.targets.entries())
        assignTo(target, evaluate(node.values[i]!, run), inner.variables);
      return execute(node.body, inner);
    }
    case "Assign":
      checkNamespaces(node.target, variables);
      return void assignTo(node.target, evaluate(node.node, run), variables);
    case "AssignBlock": {
      const inner = enter(run, scope.inner(node, [], node.body));
      const { filter, target } = node;
      return capture(node.body, inner, (text) =>
        assignTo(target, filter === null ? text : applyFilters(filter, text, inner), variables),
      );
    }
    case "Break":
      return "break";
    case "Continue":
      return "continue";
  }
}

/** Writes a value that is not converted to a string. */
function writeText({ output }: Run, value: Value): undefined {
  output.write(isText(value) ? str(value) : fail(`expected str instance, ${typeName(value)} found`));
}

/** Executes a body, and passes the text that it writes to `use`. */
function capture(body: Body, run: Run, use: (text: string) => void): Word {
  const output = new Output();
  const word = execute(body, { ...run, output });
  if (word === undefined) use(output.text);
  return word;
}

/** Applies filters, the innermost of which has the text of a block as its value. */
function applyFilters(node: Expression, text: Value, run: Run): Value {
  if (node.type !== "Filter") return fail("expected a filter");
  return applyFilter(node, node.node === null ? text : applyFilters(node.node, text, run), run);
}

function executeLoop(node: For, run: Run): Word {
  const scope = run.scope.inner(node, [node.target], node.body);
  const items = evaluate(node.iterable, run);
  const loop = new Loop(node.test === null ? items : new Iteration(selected(node, node.test, items, run)));
  let isCompleted = false;
  for (let item = loop.next(); item !== undefined; item = loop.next()) {
    const inner = enter(run, scope);
    inner.variables.set("loop", loop.variable);
    assignTo(node.target, item, inner.variables);
    const word = execute(node.body, inner);
    if (word === "break") break;
    // As in jinja2, an iteration that `break` or `continue` ended does not count for `else`.
    isCompleted ||= word === undefined;
  }
  if (isCompleted) return undefined;
  return execute(node.otherwise, enter(run, run.scope.inner(node.otherwise, [], node.otherwise)));
}

/** Yields the items for which the test of the loop is true, with tuples instead of other iterables. */
function* selected(node: For, test: Expression, items: Value, run: Run): Generator<Value> {
  const inner = enter(run, run.scope.inner(test, [node.target], [test]));
  for (const item of iterate(items)) {
    assignTo(node.target, item, inner.variables);
    if (isTrue(evaluate(test, inner))) yield assignedValue(node.target, item);
  }
}

const attributes = ["name", "arguments", "catch_kwargs", "catch_varargs", "caller"];

function macroOf(node: Macro, defined: Run): Callable {
  const scope = defined.scope.inner(node, node.args, [...node.defaults, ...node.body]);
  const firstDefault = node.args.length - node.defaults.length;
  const call = (args: readonly Value[], keywords: Keywords): string => {
    const run = { ...enter(defined, scope), output: new Output() };
    const bound = bindMacro(node, args, keywords);
    node.args.forEach(({ name }, i) => run.variables.set(name, bound[i]));
    node.args.forEach(({ name }, i) => {
      if (bound[i] !== undefined) return;
      const byDefault = node.defaults[i - firstDefault];
      const missing = () => new Undefined(`parameter ${repr(name)} was not provided`);
      run.variables.set(name, byDefault === undefined ? missing() : evaluate(byDefault, run));
    });
    execute(node.body, run);
    return run.output.text;
  };
  return new Callable(
    "Macro",
    call,
    (name) => (attributes.includes(name) ? unsupported(`the attribute ${name} of a macro`) : undefined),
    () => `<Macro ${node.name === null ? "anonymous" : repr(node.name)}>`,
  );
}

function bindMacro(
  { name: macro, args: parameters }: Macro,
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
