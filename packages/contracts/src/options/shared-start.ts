/** Returns the length of the common beginning of two texts, in UTF-16 units, or of two lists. */
export function sharedStart(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1;
  return length;
}

/** Returns the length of the common end of two texts, in UTF-16 units. */
export function sharedEnd(a: string, b: string): number {
  let length = 0;
  while (length < a.length && length < b.length && a.at(-1 - length) === b.at(-1 - length)) length += 1;
  return length;
}
