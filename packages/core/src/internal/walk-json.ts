/**
 * Goes over the signs of a JSON text that stand outside its texts and numbers, without recursion and before it is parsed:
 * what nests too deep exhausts the stack of whoever looks at it. Says nothing about whether it is JSON. For the packages
 * that read files of others, by a path of its own: it is no part of measuring.
 *
 * @param see is told each of `{ [ ] } :` and how many lists and objects are open around it; false ends the walk
 */
export function walkJson(json: string, see: (sign: string, level: number) => boolean): void {
  let level = 0;
  let inText = false;
  for (let i = 0; i < json.length; i++) {
    const sign = json[i]!;
    if (inText) {
      if (sign === "\\") i += 1;
      else if (sign === '"') inText = false;
    } else if (sign === '"') inText = true;
    else if (sign === "{" || sign === "[") {
      if (!see(sign, level)) return;
      level += 1;
    } else if (sign === "}" || sign === "]") {
      level -= 1;
      if (!see(sign, level)) return;
    } else if (sign === ":" && !see(sign, level)) return;
  }
}
