import type * as promises from "node:fs/promises";

/** Paths opened since the array was last cleared, in tests that mock `node:fs/promises` with `recorded`. */
export const openedFiles: string[] = [];

/** Returns `node:fs/promises` that records every path whose content is read in `openedFiles`. */
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
