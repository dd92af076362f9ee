import type * as promises from "node:fs/promises";

/** Paths that were opened since the list was last emptied. For tests that mock `node:fs/promises` with `recorded`. */
export const openedFiles: string[] = [];

/** `node:fs/promises` whose ways to a file's content are kept in `openedFiles`. */
export function recorded(original: typeof promises): typeof promises {
  const keep = (path: unknown) => void openedFiles.push(String(path));
  return {
    ...original,
    open: (path, ...rest) => {
      keep(path);
      return original.open(path, ...rest);
    },
    readFile: ((path: string, ...rest: []) => {
      keep(path);
      return original.readFile(path, ...rest);
    }) as typeof promises.readFile,
    copyFile: (from, ...rest) => {
      keep(from);
      return original.copyFile(from, ...rest);
    },
  };
}
