/** The `code` of an error that `useBackend` makes the wasm engine throw when an allocation fails. */
export const fullHeapCode = "ENGINE_OUT_OF_MEMORY";

/** Joins the remedies of a `memory` error to one sentence. */
export const joinRemedies = (remedies: readonly string[]): string => {
  const text =
    remedies.length === 0 ? "use smaller batches, or a machine with more memory" : remedies.join("; or ");
  return `${text[0]!.toUpperCase()}${text.slice(1)}.`;
};

/** Returns `3.41 GiB`, or `12.3 MiB` for less than 0.1 GiB. */
export function describeBytes(bytes: number): string {
  return bytes >= 0.1 * 2 ** 30
    ? `${(bytes / 2 ** 30).toFixed(2)} GiB`
    : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
