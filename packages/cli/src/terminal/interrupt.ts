/**
 * A signal that the first Ctrl-C aborts, so that a run ends in order: what was measured is written, and the same
 * command goes on later. The second Ctrl-C ends the process at once.
 */
export function onInterrupt(): { readonly signal: AbortSignal; stopListening(): void } {
  const controller = new AbortController();
  const abort = () => controller.abort(new Error("interrupted"));
  process.once("SIGINT", abort);
  return { signal: controller.signal, stopListening: () => void process.off("SIGINT", abort) };
}
