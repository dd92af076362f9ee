import { compileExpression } from "./compile-expression.ts";
import { fail } from "./errors.ts";
import { identifierOf, innerFrame, type Frame } from "./frame.ts";
import type { Body, Macro } from "./nodes.ts";
import { repr } from "./print.ts";
import { Output, Variables, enter, type Run, type Step } from "./run.ts";
import { undeclared } from "./symbols.ts";
import { Callable, Dict, Tuple, Undefined, type Keywords, type Value } from "./values.ts";

const special = ["caller", "kwargs", "varargs"] as const;

/** What a macro takes besides its arguments: the variables that its body reads. */
type Special = Partial<Record<(typeof special)[number], string>>;

/** Returns a function that makes the macro's value. */
export function compileMacro(
  node: Macro,
  outer: Frame,
  compileBody: (body: Body, frame: Frame) => Step,
): (run: Run) => Callable {
  const frame = innerFrame(outer, false);
  const names = node.args.map(({ name }) => name);
  const analyze = () => {
    for (const part of [...node.args, ...node.defaults, ...node.body]) frame.symbols.visit(part);
  };
  analyze();
  const read = undeclared(node.body, special);
  const firstDefault = names.length - node.defaults.length;
  const callerAt = names.indexOf("caller");
  if (read.has("caller") && callerAt >= 0 && callerAt < firstDefault)
    fail('the special "caller" argument must be omitted or be given a default');
  const extra: Special = {};
  for (const name of special)
    if (read.has(name) && !names.includes(name)) extra[name] = frame.symbols.declare(name);
  analyze();

  const identifiers = names.map((name) => identifierOf(frame, name));
  const defaults = names.map((name, i) =>
    i < firstDefault
      ? () => new Undefined(`parameter ${repr(name)} was not provided`)
      : compileExpression(node.defaults[i - firstDefault]!, frame),
  );
  const body = compileBody(node.body, frame);

  const call = (defined: Run, args: readonly Value[], keywords: Keywords): string => {
    const variables = new Variables(defined.variables);
    const run: Run = { ...defined, variables, output: new Output() };
    const bound = bindMacro(node.name, names, extra, args, keywords);
    identifiers.forEach((identifier, i) => variables.set(identifier, bound.values[i]));
    for (const name of special)
      if (extra[name] !== undefined) variables.set(extra[name], bound.special[name]);
    enter(frame.symbols, run);
    identifiers.forEach((identifier, i) => {
      if (variables.get(identifier) === undefined) variables.set(identifier, defaults[i]!(run));
    });
    body(run);
    return run.output.text;
  };

  const attributes: Readonly<Record<string, Value>> = {
    name: node.name,
    arguments: new Tuple(names),
    catch_kwargs: extra.kwargs !== undefined,
    catch_varargs: extra.varargs !== undefined,
    caller: read.has("caller"),
  };
  return (run) =>
    new Callable(
      "Macro",
      (args, keywords) => call(run, args, keywords),
      (name) => (Object.hasOwn(attributes, name) ? attributes[name] : undefined),
      () => `<Macro ${node.name === null ? "anonymous" : repr(node.name)}>`,
    );
}

interface Bound {
  readonly values: readonly (Value | undefined)[];
  readonly special: Readonly<Record<keyof Special, Value>>;
}

function bindMacro(
  macro: string | null,
  names: readonly string[],
  extra: Special,
  args: readonly Value[],
  keywords: Keywords,
): Bound {
  const rest = new Map(keywords);
  const take = (name: string) => {
    const value = rest.get(name);
    rest.delete(name);
    return value;
  };
  const values = names.map((name, i) => (i < args.length ? args[i] : take(name)));
  const passed = extra.caller === undefined ? null : (take("caller") ?? null);
  const [unknown] = rest.keys();
  if (extra.kwargs === undefined && unknown !== undefined)
    fail(`macro ${repr(macro)} takes no keyword argument ${repr(unknown)}`);
  if (extra.varargs === undefined && args.length > names.length)
    fail(`macro ${repr(macro)} takes not more than ${names.length} argument(s)`);
  return {
    values,
    special: {
      caller: passed ?? new Undefined("No caller defined"),
      kwargs: new Dict(rest),
      varargs: new Tuple(args.slice(names.length)),
    },
  };
}
