const events = ["uncaughtException", "unhandledRejection"] as const;

/** Listeners of modules that Emscripten compiled, by their source, as written and as minified. */
const sources: Readonly<Record<(typeof events)[number], RegExp>> = {
  uncaughtException: /\binstanceof ExitStatus\b[^]*\bthrow \w+/,
  unhandledRejection: /^(?:function\s*)?\(?(\w+)\)?\s*(?:=>)?\s*\{\s*throw \1;?\s*\}$/,
};

/**
 * Removes the listeners with which modules of Emscripten, such as the wasm backend of TensorFlow.js, throw uncaught errors and
 * rejections again. Because of them a process ends at a rejection that another listener has reported, and prints a line of the
 * module instead of the line that threw. Without them Node does with other errors what it always does.
 */
export function removeRethrowingListeners(): void {
  const { process } = globalThis as { process?: NodeJS.EventEmitter };
  for (const event of events)
    for (const listener of process?.listeners?.(event) ?? [])
      if (sources[event].test(String(listener))) process!.removeListener(event, listener as () => void);
}
