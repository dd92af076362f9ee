import { calculate, signed } from "./arithmetic.ts";
import { getAttribute, getItem } from "./attributes.ts";
import { comparisons } from "./compare.ts";
import { unsupported } from "./errors.ts";
import { filterOf, testOf } from "./filters.ts";
import { conditionalFrame, identifierOf, type Frame } from "./symbols.ts";
import { callValue } from "./globals.ts";
import type { Arguments, Expression, Filter } from "./nodes.ts";
import { str } from "./print.ts";
import { undefinedName, type Code, type Run } from "./run.ts";
import { isTrue, slice } from "./sequences.ts";
import { Dict, Tuple, Undefined, orElse, type Keywords, type Value } from "./values.ts";

export function compileExpression(node: Expression, frame: Frame): Code {
  const compile = (child: Expression) => compileExpression(child, frame);
  switch (node.type) {
    case "Const":
      return () => node.value;
    case "TemplateData":
      return () => node.data;
    case "Name": {
      const identifier = identifierOf(frame, node.name);
      return ({ variables }) => orElse(variables.get(identifier), () => undefinedName(node.name));
    }
    case "Tuple": {
      const items = node.items.map(compile);
      return (run) => new Tuple(items.map((item) => item(run)));
    }
    case "List": {
      const items = node.items.map(compile);
      return (run) => items.map((item) => item(run));
    }
    case "Dict": {
      const items = node.items.map(({ key, value }) => [compile(key), compile(value)] as const);
      return (run) => new Dict(items.map(([key, value]) => [key(run), value(run)]));
    }
    case "GetAttribute": {
      const object = compile(node.node);
      return (run) => getAttribute(object(run), node.attribute);
    }
    case "GetItem":
      return compileItem(node, frame);
    case "Call": {
      const callee = compile(node.node);
      const evaluate = compileArguments(node, frame);
      return (run) => {
        const value = callee(run);
        return callValue(value, ...evaluate(run));
      };
    }
    case "Filter":
    case "Test": {
      const apply = compileFilter(node, frame);
      const value = compile(node.node!);
      return (run) => apply(run, value(run));
    }
    case "Conditional":
      return compileConditional(node, conditionalFrame(frame));
    case "Binary":
      return compileBinary(node, frame);
    case "Unary": {
      const value = compile(node.node);
      const { operator } = node;
      return operator === "not" ? (run) => !isTrue(value(run)) : (run) => signed(operator, value(run));
    }
    case "Compare":
      return compileComparison(node, frame);
    case "Concat": {
      const nodes = node.nodes.map(compile);
      return (run) => nodes.map((code) => str(code(run))).join("");
    }
    default:
      return unsupported(`an expression of the type ${node.type} here`);
  }
}

function compileItem({ node, key }: Extract<Expression, { type: "GetItem" }>, frame: Frame): Code {
  const object = compileExpression(node, frame);
  if (key.type !== "Slice") {
    const evaluate = compileExpression(key, frame);
    return (run) => getItem(object(run), evaluate(run));
  }
  const [start, stop, step] = [key.start, key.stop, key.step].map((bound) =>
    bound === null ? undefined : compileExpression(bound, frame),
  );
  return (run) => slice(object(run), start?.(run), stop?.(run), step?.(run));
}

function compileConditional(node: Extract<Expression, { type: "Conditional" }>, frame: Frame): Code {
  const condition = compileExpression(node.test, frame);
  const yes = compileExpression(node.yes, frame);
  const no = node.no === null ? undefined : compileExpression(node.no, frame);
  const missing = "the inline if-expression evaluated to false and no else section was defined.";
  return (run) => (isTrue(condition(run)) ? yes(run) : orElse(no?.(run), () => new Undefined(missing)));
}

function compileBinary(node: Extract<Expression, { type: "Binary" }>, frame: Frame): Code {
  const left = compileExpression(node.left, frame);
  const right = compileExpression(node.right, frame);
  const { operator } = node;
  if (operator === "and" || operator === "or")
    return (run) => {
      const value = left(run);
      return isTrue(value) === (operator === "and") ? right(run) : value;
    };
  return (run) => calculate(left(run), operator, right(run));
}

function compileComparison(node: Extract<Expression, { type: "Compare" }>, frame: Frame): Code {
  const first = compileExpression(node.expression, frame);
  const operands = node.operands.map(({ operator, expression }) => ({
    compares: comparisons[operator],
    code: compileExpression(expression, frame),
  }));
  return (run) => {
    let left = first(run);
    for (const { compares, code } of operands) {
      const right = code(run);
      if (!compares(left, right)) return false;
      left = right;
    }
    return true;
  };
}

/** Returns a function that applies a filter or test to a value. */
export function compileFilter(node: Filter, frame: Frame): (run: Run, value: Value) => Value {
  const { name, type } = node;
  const apply = type === "Filter" ? filterOf(name) : testOf(name);
  const refuse = () => unsupported(`the ${type.toLowerCase()} ${name}`);
  const evaluate = compileArguments(node, frame);
  if (apply === undefined) return frame.isConditional ? refuse : refuse();
  return (run, value) => {
    const [args, keywords] = evaluate(run);
    return apply([value, ...args], keywords);
  };
}

/** Returns a function that evaluates arguments. */
export function compileArguments(node: Arguments, frame: Frame): (run: Run) => [Value[], Keywords] {
  const args = node.args.map((arg) => compileExpression(arg, frame));
  const keywords = node.keywords.map(({ key, value }) => [key, compileExpression(value, frame)] as const);
  return (run) => {
    const values = args.map((arg) => arg(run));
    return [values, new Map(keywords.map(([key, value]) => [key, value(run)]))];
  };
}
