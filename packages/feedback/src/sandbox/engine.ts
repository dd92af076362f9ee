// The process in which untrusted code runs: QuickJS compiled to WebAssembly, which is given nothing of Node. Started by
// run-in-sandbox.ts for one order, and killed after it.
import releaseVariant from "@jitl/quickjs-wasmfile-release-sync";
import {
  newQuickJSWASMModuleFromVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSSyncVariant,
} from "quickjs-emscripten-core";
import { changedBuiltIn, isWholeText } from "./guest.ts";
import type { SandboxAnswer, SandboxOrder, SandboxValue } from "./messages.ts";

const tell = (answer: SandboxAnswer): boolean => process.send!(answer);

/** Why code ended by an exception, in its own words, cut to a line. */
function reasonOf(context: QuickJSContext, error: QuickJSHandle): string {
  try {
    const name = context.getProp(error, "name").consume((handle) => context.getString(handle));
    const message = context.getProp(error, "message").consume((handle) => context.getString(handle));
    return `${name}: ${message}`.slice(0, 200);
  } catch {
    return "an exception that cannot be shown";
  }
}

/**
 * @throws Error for what is no number, text, truth value or null, for a text that is too long, and for one that does not cross
 *   whole: what stands behind a NUL is cut off, half a pair of surrogates becomes other characters.
 */
function valueOf(
  context: QuickJSContext,
  handle: QuickJSHandle,
  { textLength, isWhole }: { readonly textLength: number; readonly isWhole: QuickJSHandle },
): SandboxValue {
  const type = context.typeof(handle);
  if (type === "number") return context.getNumber(handle);
  if (type === "boolean") return context.sameValue(handle, context.true);
  if (context.sameValue(handle, context.null)) return null;
  if (type !== "string") throw new Error(`a value of type ${type}`);
  const length = context.getProp(handle, "length").consume((own) => context.getNumber(own));
  if (length > textLength) throw new Error(`a text of ${length} characters, over the limit of ${textLength}`);
  const whole = context.unwrapResult(
    context.callFunction(isWhole, context.undefined, handle, context.newNumber(length)),
  );
  if (!context.sameValue(whole, context.true))
    throw new Error("a text with a NUL or half a pair of surrogates in it");
  return context.getString(handle);
}

async function run({ code, expressions, limits }: SandboxOrder): Promise<SandboxAnswer> {
  const quickjs = await newQuickJSWASMModuleFromVariant(releaseVariant as unknown as QuickJSSyncVariant);
  tell({ kind: "ready" });
  const runtime = quickjs.newRuntime();
  runtime.setMemoryLimit(limits.memoryMegabytes * 1024 * 1024);
  runtime.setMaxStackSize(limits.stackKilobytes * 1024);
  const deadline = performance.now() + 1000 * limits.seconds;
  runtime.setInterruptHandler(() => performance.now() > deadline);
  const context = runtime.newContext();
  const asked: string[] = [];
  runtime.setModuleLoader((name) => {
    asked.push(name.slice(0, 60));
    return { error: new Error(`there is no module ${name}`) };
  });
  const reasonWithin = (error: QuickJSHandle): string => {
    const reason = reasonOf(context, error);
    // An exception's own words may be what has no end.
    const isLate = reason.includes("interrupted") || performance.now() > deadline;
    return isLate ? `no end within ${limits.seconds} s` : reason;
  };
  const evaluate = <T>(source: string, use: (handle: QuickJSHandle) => T): T => {
    const result = context.evalCode(source);
    if (result.error !== undefined) throw new Error(result.error.consume(reasonWithin));
    return result.value.consume(use);
  };
  try {
    const isWhole = evaluate(isWholeText, (handle) => handle.dup());
    const changed = evaluate(changedBuiltIn, (handle) => handle.dup());
    evaluate(code, () => undefined);
    const jobs = runtime.executePendingJobs();
    if (jobs.error !== undefined) throw new Error(reasonWithin(jobs.error));
    // Where a promise holds what was interrupted, no error comes out.
    if (performance.now() > deadline) throw new Error(`no end within ${limits.seconds} s`);
    if (asked.length > 0) throw new Error(`a module (${asked[0]}), of which there are none`);
    const other = context.unwrapResult(context.callFunction(changed, context.undefined));
    if (!context.sameValue(other, context.null))
      throw new Error(`a change of what is built in: ${context.getString(other)}`);
    const values = expressions.map((source) =>
      evaluate(source, (handle) => valueOf(context, handle, { textLength: limits.textLength, isWhole })),
    );
    return { kind: "values", values };
  } catch (error) {
    return { kind: "failed", reason: error instanceof Error ? error.message : String(error) };
  }
  // Neither context nor runtime is disposed of: the process ends, and its memory with it, whatever state they are in.
}

process.once("message", (order: SandboxOrder) => void run(order).then(tell));
// Who ordered is gone: nobody is left who would end this.
process.once("disconnect", () => process.exit());
