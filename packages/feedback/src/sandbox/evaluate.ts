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
 * Copies a value out of the engine.
 *
 * @throws Error for anything but a number, string, boolean or null, for a string that is too long, and for a string that copying
 *   would change: a copy ends at the first NUL, and replaces half a surrogate pair.
 */
function valueOf(
  context: QuickJSContext,
  handle: QuickJSHandle,
  { textLength, isWellFormed }: { readonly textLength: number; readonly isWellFormed: QuickJSHandle },
): SandboxValue {
  const type = context.typeof(handle);
  if (type === "number") return context.getNumber(handle);
  if (type === "boolean") return context.sameValue(handle, context.true);
  if (context.sameValue(handle, context.null)) return null;
  if (type !== "string") throw new Error(`a value of type ${type}`);
  const length = context.getProp(handle, "length").consume((property) => context.getNumber(property));
  if (length > textLength)
    throw new Error(`a string of ${length} characters, over the limit of ${textLength}`);
  const wellFormed = context.unwrapResult(
    context.callFunction(isWellFormed, context.undefined, handle, context.newNumber(length)),
  );
  if (!context.sameValue(wellFormed, context.true))
    throw new Error("a string that contains a NUL or half a surrogate pair");
  return context.getString(handle);
}

const mebibyte = 1024 * 1024;
/** Memory that the engine itself uses, mostly its stack, and its initial memory. */
const [engineMegabytes, initialMegabytes] = [5.5, 16];
/** The engine cannot address more. */
const maxPages = 32_768;

/** Processor time of this process: code that waits does not exist in the engine, and a stopped process uses none. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
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
 * exceed the time limit: `runInSandbox` uses a separate process for this reason.
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
  let deadline = Infinity;
  let isLate = false;
  const checkTime = () => (isLate ||= processorMs() > deadline);
  runtime.setInterruptHandler(checkTime);
  const context = runtime.newContext();
  const imports: string[] = [];
  runtime.setModuleLoader((name) => {
    imports.push(name.slice(0, 60));
    return { error: new Error(`there is no module ${name}`) };
  });
  const reasonWithin = (error: QuickJSHandle): string => {
    const reason = reasonOf(context, error);
    // The getter of the exception's message may be the code that does not end.
    return checkTime() ? `no end within ${limits.seconds} s` : reason;
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
    const isWellFormed = valueIn(isWellFormedText, (handle) => handle.dup());
    const changed = valueIn(changedBuiltIn, (handle) => handle.dup());
    onReady();
    deadline = processorMs() + 1000 * limits.seconds;
    valueIn(code, () => undefined);
    const jobs = runtime.executePendingJobs();
    if (jobs.error !== undefined) throw new Error(reasonWithin(jobs.error));
    // An interruption inside a promise rejects that promise and throws nothing here.
    if (checkTime()) throw new Error(`no end within ${limits.seconds} s`);
    if (imports.length > 0) throw new Error(`an import of ${imports[0]}: the sandbox has no modules`);
    // The code's time stops during the check, which runs no code of it.
    const msLeft = deadline - processorMs();
    deadline = Infinity;
    const builtIn = context.unwrapResult(context.callFunction(changed, context.undefined));
    deadline = processorMs() + msLeft;
    if (!context.sameValue(builtIn, context.null))
      throw new Error(`a changed built-in: ${context.getString(builtIn)}`);
    const values = expressions.map((source) =>
      valueIn(source, (handle) => valueOf(context, handle, { textLength: limits.textLength, isWellFormed })),
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

// Our code inside the sandbox. It is compiled before the untrusted code, which could replace built-ins. It therefore calls only
// functions that it captured at the start, and walks arrays by index instead of by iterator.

/**
 * Source of `(text, length) => boolean`: whether a string of `length` UTF-16 units contains neither a NUL nor half a surrogate
 * pair. Copying such a string out of the engine would change it.
 */
const isWellFormedText = `(() => {
  const unitAt = Function.prototype.call.bind(String.prototype.charCodeAt);
  return (text, length) => {
    for (let at = 0; at < length; at += 1) {
      const unit = unitAt(text, at);
      if (unit === 0 || (unit >= 0xdc00 && unit <= 0xdfff)) return false;
      if (unit < 0xd800 || unit > 0xdbff) continue;
      at += 1;
      const next = at < length ? unitAt(text, at) : 0;
      if (next < 0xdc00 || next > 0xdfff) return false;
    }
    return true;
  };
})()`;

/** Source of `() => string | null`: the name of the first changed built-in, such as `Array.prototype.map`. */
const changedBuiltIn = `(() => {
  const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const nameOf = String;
  const isSame = (a, b) => a === b || (a !== a && b !== b);
  const kept = [];
  const seen = new Set();
  const keep = (name, holder) => {
    if (holder === null || (typeof holder !== "object" && typeof holder !== "function") || seen.has(holder)) return;
    seen.add(holder);
    const keys = ownKeys(holder);
    const own = [];
    for (let at = 0; at < keys.length; at += 1)
      own[at] = { key: keys[at], was: getOwnPropertyDescriptor(holder, keys[at]) };
    kept[kept.length] = { name, holder, own, count: keys.length, parent: getPrototypeOf(holder), grows: name === "globalThis" };
  };
  keep("globalThis", globalThis);
  const names = ownKeys(globalThis);
  for (let at = 0; at < names.length; at += 1) {
    const value = getOwnPropertyDescriptor(globalThis, names[at]).value;
    const name = nameOf(names[at]);
    keep(name, value);
    if (typeof value === "function") keep(name + ".prototype", value.prototype);
  }
  // No global leads to these prototypes.
  const hidden = {
    ArrayIterator: [][Symbol.iterator](),
    MapIterator: new Map().entries(),
    SetIterator: new Set().values(),
    StringIterator: ""[Symbol.iterator](),
    RegExpStringIterator: "".matchAll(/a/g),
    GeneratorFunction: function* () {},
    AsyncFunction: async function () {},
    AsyncGeneratorFunction: async function* () {},
  };
  for (const name of ownKeys(hidden)) keep(name + ".prototype", getPrototypeOf(hidden[name]));
  for (let at = 0; at < kept.length; at += 1) {
    const { name, own, parent } = kept[at];
    for (const { key, was } of own) {
      const place = name + "." + nameOf(key);
      keep(place, was.value);
      keep(place, was.get);
      keep(place, was.set);
    }
    keep("prototype of " + name, parent);
  }
  return () => {
    for (let at = 0; at < kept.length; at += 1) {
      const { name, holder, own, count, parent, grows } = kept[at];
      if (getPrototypeOf(holder) !== parent) return name;
      const keys = ownKeys(holder);
      // The code may define new globals.
      if (keys.length < count || (!grows && keys.length > count)) return name;
      for (let i = 0; i < own.length; i += 1) {
        const { key, was } = own[i];
        const is = getOwnPropertyDescriptor(holder, key);
        if (is === undefined || !isSame(is.value, was.value) || is.get !== was.get || is.set !== was.set)
          return name + "." + nameOf(key);
      }
    }
    return null;
  };
})()`;
