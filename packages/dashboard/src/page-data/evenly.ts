/** Returns at most `count` evenly spaced items, including the first and the last. */
export function evenly<T>(items: readonly T[], count = 120): readonly T[] {
  if (items.length <= count) return items;
  const every = (items.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, at) => items[Math.round(at * every)]!);
}
