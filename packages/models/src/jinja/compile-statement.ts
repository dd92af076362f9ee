import { compileNamespaceCheck, compileTarget } from "./assignment.ts";
import { compileExpression, compileFilter } from "./compile-expression.ts";
import { compileLoop } from "./compile-loop.ts";
import { fail, unsupported } from "./errors.ts";
import { undeclared, conditionalFrame, identifierOf, innerFrame, type Frame } from "./symbols.ts";
import type { Body, Expression, If, Macro, Statement } from "./nodes.ts";
import { str, repr } from "./print.ts";
import { Output, enter, leave, type Run, type Step, Variables } from "./run.ts";
import { isTrue } from "./sequences.ts";
import { isText, typeName, type Value, Callable, Undefined, type Keywords } from "./values.ts";

export function compileBody(body: Body, frame: Frame): Step {
  const steps = body.map((statement) => compileStatement(statement, frame));
  return (run) => {
    for (const step of steps) {
      const word = step(run);
      if (word !== undefined) return word;
    }
    return undefined;
  };
}

function compileStatement(node: Statement, frame: Frame): Step {
  switch (node.type) {
    case "Output":
      return compileOutput(node.nodes, frame);
    case "If":
      return compileIf(node, conditionalFrame(frame));
    case "For":
      return compileLoop(node, frame, compileBody);
    case "Macro":
      return compileDefinition(node, frame);
    case "Generation":
      return compileGeneration(node, frame);
    case "FilterBlock":
      return compileFilterBlock(node, frame);
    case "With":
      return compileWith(node, frame);
    case "Assign":
      return compileAssign(node, frame);
    case "AssignBlock":
      return compileAssignBlock(node, frame);
    case "Break":
    case "Continue": {
      if (!frame.isInLoop) fail(`'${node.type.toLowerCase()}' outside loop`);
      const word = node.type === "Break" ? "break" : "continue";
      return () => word;
    }
  }
}

function compileOutput(nodes: readonly Expression[], frame: Frame): Step {
  const codes = nodes.map((node) => compileExpression(node, frame));
  return (run) => {
    for (const code of codes) run.output.write(str(code(run)));
    return undefined;
  };
}

function compileIf(node: If, frame: Frame): Step {
  const branches = [node, ...node.elifs].map(({ test, body }) => ({
    test: compileExpression(test, frame),
    body: compileBody(body, frame),
  }));
  const otherwise = compileBody(node.otherwise, frame);
  return (run) => (branches.find(({ test }) => isTrue(test(run)))?.body ?? otherwise)(run);
}

function compileDefinition(node: Macro, frame: Frame): Step {
  const make = compileMacro(node, frame, compileBody);
  const name = node.name!;
  const identifier = identifierOf(frame, name);
  return (run) => {
    const macro = make(run);
    run.variables.set(identifier, macro);
    if (frame.isTop) run.context.assigned.set(name, macro);
    return undefined;
  };
}

/** Writes a value that is not converted to a string. */
function writeText({ output }: Run, value: Value): undefined {
  output.write(isText(value) ? str(value) : fail(`expected str instance, ${typeName(value)} found`));
}

/** As in transformers, the block is a macro: what it assigns stays inside. */
function compileGeneration(node: Macro, frame: Frame): Step {
  const make = compileMacro(node, frame, compileBody);
  return (run) => {
    const text = str(make(run).call([], new Map()));
    run.context.addGenerated(text);
    return writeText(run, text);
  };
}

/** Runs a body, and passes the text that it writes to `use`. */
function compileCapture(nodes: Body, frame: Frame, use: (run: Run, text: string) => void): Step {
  const body = compileBody(nodes, frame);
  return (run) => {
    enter(frame.symbols, run);
    const inner = { ...run, output: new Output() };
    const word = body(inner);
    if (word !== undefined) return word;
    use(run, inner.output.text);
    leave(frame.symbols, run);
    return undefined;
  };
}

function compileFilterBlock(node: Extract<Statement, { type: "FilterBlock" }>, outer: Frame): Step {
  const frame = innerFrame(outer);
  for (const statement of node.body) frame.symbols.visit(statement);
  frame.symbols.visit(node.filter);
  const apply = compileFilters(node.filter, frame);
  return compileCapture(node.body, frame, (run, text) => writeText(run, apply(run, text)));
}

/** Returns a function that applies filters, the innermost of which has the text of a block as its value. */
function compileFilters(node: Expression, frame: Frame): (run: Run, text: Value) => Value {
  if (node.type !== "Filter") return fail("expected a filter");
  const apply = compileFilter(node, frame);
  if (node.node === null) return apply;
  const inner = compileFilters(node.node, frame);
  return (run, text) => apply(run, inner(run, text));
}

function compileWith(node: Extract<Statement, { type: "With" }>, outer: Frame): Step {
  const frame = innerFrame(outer);
  for (const part of [...node.targets, ...node.body]) frame.symbols.visit(part);
  const assignments = node.targets.map((target, i) => ({
    assign: compileTarget(target, frame),
    value: compileExpression(node.values[i]!, outer),
  }));
  const body = compileBody(node.body, frame);
  return (run) => {
    enter(frame.symbols, run);
    for (const { assign, value } of assignments) assign(run, value(run));
    const word = body(run);
    leave(frame.symbols, run);
    return word;
  };
}

function compileAssign(node: Extract<Statement, { type: "Assign" }>, frame: Frame): Step {
  const check = compileNamespaceCheck(node.target, frame);
  const assign = compileTarget(node.target, frame);
  const value = compileExpression(node.node, frame);
  return (run) => {
    check(run);
    assign(run, value(run));
    return undefined;
  };
}

function compileAssignBlock(node: Extract<Statement, { type: "AssignBlock" }>, outer: Frame): Step {
  const frame = innerFrame(outer);
  for (const statement of node.body) frame.symbols.visit(statement);
  const assign = compileTarget(node.target, outer);
  const apply = node.filter === null ? (_: Run, text: Value) => text : compileFilters(node.filter, frame);
  return compileCapture(node.body, frame, (run, text) => assign(run, apply(run, text)));
}

/** Variables that jinja2 sets in a macro that reads them. */
const special = ["caller", "kwargs", "varargs"];
const attributes = ["name", "arguments", "catch_kwargs", "catch_varargs", "caller"];

/** Returns a function that makes the macro's value. */
function compileMacro(
  node: Macro,
  outer: Frame,
  compileBody: (body: Body, frame: Frame) => Step,
): (run: Run) => Callable {
  const frame = innerFrame(outer, false);
  const names = node.args.map(({ name }) => name);
  const [read] = undeclared(node.body, special);
  if (read !== undefined) unsupported(`the variable ${read} of a macro`);
  for (const part of [...node.args, ...node.defaults, ...node.body]) frame.symbols.visit(part);

  const identifiers = names.map((name) => identifierOf(frame, name));
  const firstDefault = names.length - node.defaults.length;
  const defaults = names.map((name, i) =>
    i < firstDefault
      ? () => new Undefined(`parameter ${repr(name)} was not provided`)
      : compileExpression(node.defaults[i - firstDefault]!, frame),
  );
  const body = compileBody(node.body, frame);

  const call = (defined: Run, args: readonly Value[], keywords: Keywords): string => {
    const variables = new Variables(defined.variables);
    const run: Run = { ...defined, variables, output: new Output() };
    const bound = bindMacro(node.name, names, args, keywords);
    identifiers.forEach((identifier, i) => variables.set(identifier, bound[i]));
    enter(frame.symbols, run);
    identifiers.forEach((identifier, i) => {
      if (variables.get(identifier) === undefined) variables.set(identifier, defaults[i]!(run));
    });
    body(run);
    return run.output.text;
  };
  return (run) =>
    new Callable(
      "Macro",
      (args, keywords) => call(run, args, keywords),
      (name) => (attributes.includes(name) ? unsupported(`the attribute ${name} of a macro`) : undefined),
      () => `<Macro ${node.name === null ? "anonymous" : repr(node.name)}>`,
    );
}

function bindMacro(
  macro: string | null,
  names: readonly string[],
  args: readonly Value[],
  keywords: Keywords,
): readonly (Value | undefined)[] {
  const rest = new Map(keywords);
  const take = (name: string) => {
    const value = rest.get(name);
    rest.delete(name);
    return value;
  };
  const values = names.map((name, i) => (i < args.length ? args[i] : take(name)));
  const [unknown] = rest.keys();
  if (unknown !== undefined) fail(`macro ${repr(macro)} takes no keyword argument ${repr(unknown)}`);
  if (args.length > names.length)
    fail(`macro ${repr(macro)} takes not more than ${names.length} argument(s)`);
  return values;
}
