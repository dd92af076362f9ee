import { walkJson } from "@periodic-eval/core/internal";
import { damaged } from "./damaged.ts";

/** Tensors lie two levels deep; metadata of other writers may lie a little deeper. */
const maxDepth = 32;

/**
 * A header's text as an object. Refused besides what is no JSON: nesting that no header has, which would exhaust the stack
 * of whoever looks at it, and a name that is there twice, of which readers would see one or the other.
 */
export function parseHeaderText(json: string, where: string): Record<string, unknown> {
  const { depth, keys } = survey(json);
  if (depth > maxDepth) throw damaged(where, `a header nested ${depth} deep`, `at most ${maxDepth}`);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw damaged(where, `a header that is no JSON (${(cause as Error).message})`, "a JSON object", cause);
  }
  if (!isObject(value)) throw damaged(where, "a header that is no JSON object", "a JSON object");
  const distinct = Object.values(value).filter(isObject);
  const count = distinct.reduce((sum, entry) => sum + Object.keys(entry).length, Object.keys(value).length);
  if (keys !== count) throw damaged(where, `${keys - count} names that are there twice`, "each name once");
  return value;
}

/** How deep a JSON text nests, and how many names its outer object and the objects right in it have. */
function survey(json: string): { readonly depth: number; readonly keys: number } {
  let [depth, keys] = [0, 0];
  // Its entries are no objects' where the outermost is a list.
  let isList = false;
  walkJson(json, (sign, level) => {
    if (level === 0 && sign === "[") isList = true;
    if (sign === "{" || sign === "[") depth = Math.max(depth, level + 1);
    else if (sign === ":" && level <= 2 && !isList) keys += 1;
    return depth <= maxDepth;
  });
  return { depth, keys };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
