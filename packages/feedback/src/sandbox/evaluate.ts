import releaseVariant from "@jitl/quickjs-wasmfile-release-sync";
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
} from "quickjs-emscripten-core";

/** Returns the name and message of an exception, or the value that was thrown, at most 200 characters. */
function reasonOf(context: QuickJSContext, error: QuickJSHandle): string {
  // The engine throws null if it has no memory for an error.
  if (context.sameValue(error, context.null)) return "out of memory, or the thrown value null";
  try {
    if (context.typeof(error) !== "object") {
      const text = context.getString(error);
      return `the thrown value ${context.typeof(error) === "string" ? JSON.stringify(text) : text}`.slice(
        0,
        200,
      );
    }
    const name = context.getProp(error, "name").consume((handle) => context.getString(handle));
    const message = context.getProp(error, "message").consume((handle) => context.getString(handle));
    return `${name}: ${message}`.slice(0, 200);
  } catch {
    return "an exception whose message cannot be read";
  }
}

/**
 * Copies a value out of the engine. A string is copied as JSON: a plain copy ends at the first NUL, and replaces half a surrogate
 * pair.
 *
 * @param stringify `JSON.stringify` as it was before the code ran.
 * @throws Error for anything but a number, string, boolean or null, and for a string that is too long.
 */
function valueOf(
  context: QuickJSContext,
  handle: QuickJSHandle,
  { textLength, stringify }: { readonly textLength: number; readonly stringify: QuickJSHandle },
): SandboxValue {
  const type = context.typeof(handle);
  if (type === "number") return context.getNumber(handle);
  if (type === "boolean") return context.sameValue(handle, context.true);
  if (context.sameValue(handle, context.null)) return null;
  if (type !== "string") throw new Error(`a value of type ${type}`);
  const length = context.getProp(handle, "length").consume((property) => context.getNumber(property));
  if (length > textLength)
    throw new Error(`a string of ${length} characters, over the limit of ${textLength}`);
  const json = context.unwrapResult(context.callFunction(stringify, context.undefined, handle));
  return JSON.parse(json.consume((text) => context.getString(text))) as string;
}

const mebibyte = 1024 * 1024;
/** Memory that the engine itself uses, mostly its stack, and its initial memory. */
const [engineMegabytes, initialMegabytes] = [5.5, 16];
/** The engine cannot address more. */
const maxPages = 32_768;

/** Most milliseconds that count between two readings of the clock: the time in which the process is stopped does not count. */
const longestPauseMs = 500;

/** Starts a stopwatch. The returned function says whether the code has run longer than `seconds`. */
function stopwatch(seconds: number): () => boolean {
  let [spentMs, last] = [0, performance.now()];
  return () => {
    const now = performance.now();
    spentMs += Math.min(now - last, longestPauseMs);
    last = now;
    return spentMs > 1000 * seconds;
  };
}

/**
 * Loads an engine whose whole memory is limited. Its own limit checks each allocation alone, because WebAssembly does not tell it
 * the sizes of earlier ones.
 */
function loadEngine(memoryMegabytes: number) {
  const pages = Math.ceil(
    (Math.max(initialMegabytes, memoryMegabytes + engineMegabytes) * mebibyte) / 65_536,
  );
  const wasmMemory = new WebAssembly.Memory({
    initial: initialMegabytes * 16,
    maximum: Math.min(pages, maxPages),
  });
  const variant = releaseVariant as unknown as QuickJSSyncVariant;
  return newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmMemory }));
}

/**
 * Runs a request in a new QuickJS, compiled to WebAssembly, without access to Node. Code that the engine cannot interrupt may
 * exceed the time limit: `runInSandbox` uses a worker for this reason.
 *
 * @param onReady Called when the engine is loaded and the time limit starts.
 */
export async function evaluate(
  { code, expressions, limits }: SandboxRequest,
  onReady: () => void = () => {},
): Promise<SandboxReply> {
  const quickjs = await loadEngine(limits.memoryMegabytes);
  const runtime = quickjs.newRuntime();
  runtime.setMaxStackSize(limits.stackKilobytes * 1024);
  const context = runtime.newContext();
  let isLate = () => false;
  const reasonWithin = (error: QuickJSHandle): string => {
    const reason = reasonOf(context, error);
    // The getter of the exception's message may be the code that does not end.
    return isLate() ? `no end within ${limits.seconds} s` : reason;
  };
  const valueIn = <T>(source: string, use: (handle: QuickJSHandle) => T): T => {
    const result = context.evalCode(source);
    if (result.error !== undefined) throw new Error(result.error.consume(reasonWithin));
    return result.value.consume(use);
  };
  try {
    // A small limit leaves less than the engine's initial memory.
    const unused = Math.max(0, initialMegabytes - engineMegabytes - limits.memoryMegabytes) * mebibyte;
    valueIn(`new ArrayBuffer(${Math.floor(unused)})`, (handle) => handle.dup());
    runtime.setMemoryLimit(limits.memoryMegabytes * mebibyte);
    const stringify = valueIn("JSON.stringify", (handle) => handle.dup());
    onReady();
    isLate = stopwatch(limits.seconds);
    runtime.setInterruptHandler(() => isLate());
    valueIn(code, () => undefined);
    const jobs = runtime.executePendingJobs();
    if (jobs.error !== undefined) throw new Error(reasonWithin(jobs.error));
    // An interruption inside a promise rejects that promise and throws nothing here.
    if (isLate()) throw new Error(`no end within ${limits.seconds} s`);
    const values = expressions.map((source) =>
      valueIn(source, (handle) => valueOf(context, handle, { textLength: limits.textLength, stringify })),
    );
    return { kind: "values", values };
  } catch (error) {
    return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
  }
  // Context and runtime are not disposed: each instance of the engine, with its memory, is used once.
}

/** A value that leaves the sandbox. Objects stay inside, because the code may have changed their prototypes. */
export type SandboxValue = number | string | boolean | null;

export interface SandboxLimits {
  /** Total seconds for the code and all expressions. */
  readonly seconds: number;
  /** Total memory of all values of the code. */
  readonly memoryMegabytes: number;
  readonly stackKilobytes: number;
  /** Maximum length of one returned string, in UTF-16 units. */
  readonly textLength: number;
}

export interface SandboxRequest {
  readonly code: string;
  /** Evaluated in order, after the code has run. */
  readonly expressions: readonly string[];
  readonly limits: SandboxLimits;
}

/** `ready`: the engine is loaded, and the time limit of the request starts. */
export type SandboxReply =
  | { readonly kind: "ready" }
  | { readonly kind: "values"; readonly values: readonly SandboxValue[] }
  | { readonly kind: "failed"; readonly reason: string };
