/**
 * Listens for Ctrl-C. The first one aborts the signal, so that a run writes its measurements and the same command can resume
 * it; the second one ends the process at once.
 */
export function onInterrupt(): { readonly signal: AbortSignal; stopListening(): void } {
  const controller = new AbortController();
  const abort = () => controller.abort(new Error("interrupted"));
  process.once("SIGINT", abort);
  return { signal: controller.signal, stopListening: () => void process.off("SIGINT", abort) };
}
