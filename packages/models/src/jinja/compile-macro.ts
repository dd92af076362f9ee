import { compileExpression } from "./compile-expression.ts";
import { fail, unsupported } from "./errors.ts";
import { identifierOf, innerFrame, type Frame } from "./frame.ts";
import type { Body, Macro } from "./nodes.ts";
import { repr } from "./print.ts";
import { Output, Variables, enter, type Run, type Step } from "./run.ts";
import { undeclared } from "./symbols.ts";
import { Callable, Undefined, type Keywords, type Value } from "./values.ts";

/** Variables that jinja2 sets in a macro that reads them. */
const special = ["caller", "kwargs", "varargs"];
const attributes = ["name", "arguments", "catch_kwargs", "catch_varargs", "caller"];

/** Returns a function that makes the macro's value. */
export function compileMacro(
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
