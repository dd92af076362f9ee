/** Processes a list with a concurrency limit. After the first failure it starts nothing more, and throws once the rest is done. */
export async function forEachConcurrently<T>(
  list: readonly T[],
  concurrency: number,
  work: (entry: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  let failure: { readonly error: unknown } | null = null;
  const worker = async () => {
    while (next < list.length && failure === null) {
      try {
        await work(list[next++]!);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, list.length) }, worker));
  if (failure !== null) throw (failure as { readonly error: unknown }).error;
}
