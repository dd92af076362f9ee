import { calculate, signed } from "./arithmetic.ts";
import { getAttribute, getItem } from "./attributes.ts";
import { comparisons } from "./compare.ts";
import { unsupported } from "./errors.ts";
import { filterOf, testOf } from "./filters.ts";
import { callValue } from "./globals.ts";
import type { Arguments, Expression, Filter } from "./nodes.ts";
import { str } from "./print.ts";
import type { Run } from "./run.ts";
import { isTrue, slice } from "./sequences.ts";
import { Dict, Tuple, Undefined, orElse, type Call, type Keywords, type Value } from "./values.ts";

export function evaluate(node: Expression, run: Run): Value {
  const valueOf = (child: Expression) => evaluate(child, run);
  switch (node.type) {
    case "Const":
      return node.value;
    case "TemplateData":
      return node.data;
    case "Name":
      return orElse(run.variables.get(node.name), () => new Undefined(`'${node.name}' is undefined`));
    case "Tuple":
      return new Tuple(node.items.map(valueOf));
    case "List":
      return node.items.map(valueOf);
    case "Dict":
      return new Dict(node.items.map(({ key, value }) => [valueOf(key), valueOf(value)] as const));
    case "GetAttribute":
      return getAttribute(valueOf(node.node), node.attribute);
    case "GetItem": {
      const { key } = node;
      if (key.type !== "Slice") return getItem(valueOf(node.node), valueOf(key));
      const bound = (each: Expression | null) => (each === null ? undefined : valueOf(each));
      return slice(valueOf(node.node), bound(key.start), bound(key.stop), bound(key.step));
    }
    case "Call":
      return callValue(valueOf(node.node), ...evaluateArguments(node, run));
    case "Filter":
    case "Test":
      return applyFilter(node, valueOf(node.node!), run);
    case "Conditional":
      if (isTrue(valueOf(node.test))) return valueOf(node.yes);
      return node.no === null
        ? new Undefined("the inline if-expression evaluated to false and no else section was defined.")
        : valueOf(node.no);
    case "Binary": {
      const { operator } = node;
      const left = valueOf(node.left);
      if (operator === "and" || operator === "or")
        return isTrue(left) === (operator === "and") ? valueOf(node.right) : left;
      return calculate(left, operator, valueOf(node.right));
    }
    case "Unary":
      return node.operator === "not"
        ? !isTrue(valueOf(node.node))
        : signed(node.operator, valueOf(node.node));
    case "Compare": {
      let left = valueOf(node.expression);
      return node.operands.every(({ operator, expression }) => {
        const right = valueOf(expression);
        const isSo = comparisons[operator](left, right);
        left = right;
        return isSo;
      });
    }
    case "Concat":
      return node.nodes.map((each) => str(valueOf(each))).join("");
    default:
      return unsupported(`an expression of the type ${node.type} here`);
  }
}

/** Applies a filter or test to a value. */
export function applyFilter(node: Filter, value: Value, run: Run): Value {
  const apply = functionOf(node);
  const [args, keywords] = evaluateArguments(node, run);
  return apply([value, ...args], keywords);
}

/** Returns the function of a filter or test. Throws an UnsupportedError for one that does not exist. */
export const functionOf = ({ type, name }: Filter): Call =>
  (type === "Filter" ? filterOf(name) : testOf(name)) ?? unsupported(`the ${type.toLowerCase()} ${name}`);

function evaluateArguments({ args, keywords }: Arguments, run: Run): [Value[], Keywords] {
  return [
    args.map((arg) => evaluate(arg, run)),
    new Map(keywords.map(({ key, value }) => [key, evaluate(value, run)])),
  ];
}
