/** Quotes a path for the command lines that messages print, if it needs quotes. */
export const shellWord = (path: string): string => (/^[\w./:@%+~\\-]+$/.test(path) ? path : `"${path}"`);
