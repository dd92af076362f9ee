import type { ValuePath } from "../errors.ts";

/**
 * Describes the first id that an earlier entry of a list has too; null if there is none.
 *
 * @param path Where the list is within the checked options or file.
 */
export function repeatedId(list: readonly { readonly id: string }[], path: ValuePath = []) {
  const seen = new Set<string>();
  const at = list.findIndex(({ id }) => seen.size === seen.add(id).size);
  if (at < 0) return null;
  return {
    path: [...path, at, "id"],
    got: `"${list[at]!.id}" twice`,
    expected: "unique ids",
    fix: "Rename one of the two.",
  };
}
