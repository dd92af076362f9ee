import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, vi } from "vitest";
import { evaluate, type SandboxLimits } from "./evaluate.ts";
import type * as source from "./run-in-sandbox.ts";
import { defaultLimits, type SandboxResult } from "./run-in-sandbox.ts";

/** The compiled function, because its worker is compiled too. `npm test` builds first. */
const compiled = (name: string) => new URL(`../../dist/sandbox/${name}.js`, import.meta.url);
const { runInSandbox } = (await import(compiled("run-in-sandbox").href)) as typeof source;

/** Runs a program in a process group of its own, and returns what it prints. */
async function runProgram(program: string): Promise<string> {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [printed] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return printed;
}

const reasonOf = (result: SandboxResult): string =>
  result.ok ? `returned: ${result.values.join()}` : result.reason;

/** Does the same as `runInSandbox` in this process, which is faster. */
async function evaluateHere(
  code: string,
  expressions: readonly string[],
  limits: Partial<SandboxLimits> = {},
): Promise<SandboxResult> {
  const reply = await evaluate({ code, expressions, limits: { ...defaultLimits, ...limits } });
  if (reply.kind === "values") return { ok: true, values: reply.values };
  return { ok: false, reason: reply.kind === "failed" ? reply.reason : reply.kind };
}

describe.concurrent("runInSandbox", { timeout: 300_000 }, () => {
  it("returns exact numbers and strings", async () => {
    const numbers = ["NaN", "-Infinity", "-0", "Number.MAX_VALUE"];
    expect(await runInSandbox("", numbers)).toEqual({
      ok: true,
      values: [NaN, -Infinity, -0, Number.MAX_VALUE],
    });
    expect(await runInSandbox("", ["'né 🙂'"])).toEqual({ ok: true, values: ["né 🙂"] });
    const texts = ["right\0wrong", "\ud800", "\udc00\ud800", "yes\ud800\0n"];
    const blind = "(String.prototype.toJSON = () => 65, JSON.stringify = () => 65, 1)";
    expect(await evaluateHere("", [blind, ...texts.map((text) => JSON.stringify(text))])).toEqual({
      ok: true,
      values: [1, ...texts],
    });
  });

  it("runs code in a worker, and ends it at the time limit", async () => {
    expect(reasonOf(await runInSandbox("for (;;) {}", ["1"], { seconds: 0.3 }))).toBe("no end within 0.3 s");
    expect(reasonOf(await runInSandbox("process.exit(7)", ["1"]))).toContain("ReferenceError");
    expect(reasonOf(await runInSandbox("", ["Symbol('x')"]))).toBe("a value of type symbol");
  });

  // The engine cannot interrupt these operations.
  it.each([
    ["a number that grows", "let n = 7n; for (;;) n = n * n;", "1"],
    ["a huge sparse array", "new Array(2 ** 32 - 1).join('x')", "1"],
  ])("stops %s by ending the worker", async (_, code, expression) => {
    expect(reasonOf(await runInSandbox(code, [expression], { seconds: 0.3, memoryMegabytes: 8 }))).toMatch(
      /no end within 0.3 s|out of memory/,
    );
  });

  it.each([
    ["a growing list", "const a = []; for (;;) a.push(new Array(1000).fill(1));"],
    ["a doubling string", "let s = 'x'; for (;;) s += s;"],
    ["one large buffer", "new Uint8Array(2 ** 31 - 1)"],
    ["many strings", "const all = []; for (;;) all.push('x'.repeat(100000) + all.length);"],
  ])("stops %s at the memory limit", async (_, code) => {
    const before = process.memoryUsage().rss;
    const reason = reasonOf(await runInSandbox(code, ["1"], { memoryMegabytes: 8 }));
    expect(reason).toMatch(/memory|array length|string too long|no end/);
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  });

  it("starts with fresh globals each time", async () => {
    await runInSandbox("globalThis.left = 1", ["1"]);
    expect(await runInSandbox("", ["typeof left"])).toEqual({ ok: true, values: ["undefined"] });
  });

  it.skipIf(process.platform === "win32")("keeps running at a Ctrl-C in the terminal", async () => {
    const printed = await runProgram(`
      import { runInSandbox } from "${compiled("run-in-sandbox").href}";
      process.on("SIGINT", () => undefined);
      const result = runInSandbox("", ["1 + 1"]);
      process.kill(0, "SIGINT");
      console.log(JSON.stringify(await result));
    `);
    expect(JSON.parse(printed)).toEqual({ ok: true, values: [2] });
  });

  it("rejects wrong limits", async () => {
    await expect(runInSandbox("", [], { seconds: 0 })).rejects.toThrow("sandbox limits.seconds");
    await expect(runInSandbox("", [], { minutes: 1 } as never)).rejects.toThrow("minutes");
  });
});

describe("evaluate", { timeout: 300_000 }, () => {
  it("runs the code, then returns the values of the expressions", async () => {
    const code = "function add(a, b) { return a + b; }";
    expect(await evaluateHere(code, ["add(1, 2)", "add('a', 'b')", "add(0.1, 0.2) > 0.3", "null"])).toEqual({
      ok: true,
      values: [3, "ab", true, null],
    });
  });

  it("returns the reason of a failure", async () => {
    expect(reasonOf(await evaluateHere("function f( {", []))).toContain("SyntaxError");
    expect(reasonOf(await evaluateHere("throw new Error('on purpose')", []))).toBe("Error: on purpose");
    // Only the engine's own interrupt is the time limit.
    expect(reasonOf(await evaluateHere("throw new Error('interrupted')", []))).toBe("Error: interrupted");
    expect(reasonOf(await evaluateHere("throw 'too short'", []))).toBe('the thrown value "too short"');
    expect(reasonOf(await evaluateHere("throw undefined", []))).toBe("the thrown value undefined");
    expect(reasonOf(await evaluateHere("throw { get message() { throw 1; } }", []))).toBeTruthy();
    expect(reasonOf(await evaluateHere("", ["missing(1)"]))).toContain("ReferenceError");
    expect(reasonOf(await evaluateHere("", ["({})"]))).toBe("a value of type object");
    expect(reasonOf(await evaluateHere("", ["Promise.resolve(1)"]))).toBe("a value of type object");
  });

  const file = join(tmpdir(), `escaped-${process.pid}`);
  it.each([
    ["a file", `require("fs").writeFileSync(${JSON.stringify(file)}, "out")`],
    [
      "a module",
      `import("node:fs").then((fs) => fs.writeFileSync(${JSON.stringify(file)}, "out")); throw new Error("no")`,
    ],
    ["the process", "process.exit(7)"],
    ["the environment", "process.env.PATH"],
    ["the host's function constructor", `this.constructor.constructor("return process")().exit(7)`],
    ["the host's globals", "globalThis.parentPort.postMessage({ kind: 'values', values: [1] })"],
    ["the network", "fetch('http://127.0.0.1:9/')"],
    ["a socket", "new WebSocket('ws://127.0.0.1:9/')"],
    ["a thread", "new Worker('data:text/javascript,0')"],
    [
      "shared memory",
      "new SharedArrayBuffer(8); Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)",
    ],
    ["QuickJS's own modules", "std.loadFile('/etc/passwd') + os.getcwd()"],
  ])("denies access to %s", async (_, code) => {
    expect(reasonOf(await evaluateHere(code, ["1"]))).toMatch(/ReferenceError|TypeError|Error: no/);
    expect(existsSync(file)).toBe(false);
  });

  it.each([
    ["an endless loop", "for (;;) {}", "1"],
    ["a loop in an expression", "function f() { while (true); }", "f()"],
    ["a regular expression that explodes", "/^(a+)+$/.test('a'.repeat(40) + 'b')", "1"],
    ["a loop that catches", "for (;;) { try { for (;;) {} } catch {} }", "1"],
    ["an exception with an endless getter", "throw { get name() { for (;;); } }", "1"],
    ["an endless comparison", "[2, 1].sort(() => { for (;;); })", "1"],
    ["an endless getter in an expression", "", "({ get x() { for (;;); } }).x"],
    ["an endless custom iterator", "[...{ [Symbol.iterator]: () => ({ next: () => ({}) }) }]", "1"],
    ["an endless generator", "[...(function* () { for (;;) yield 0; })()]", "1"],
  ])("stops %s at the time limit", async (_, code, expression) => {
    expect(reasonOf(await evaluateHere(code, [expression], { seconds: 0.3, memoryMegabytes: 8 }))).toMatch(
      /no end within 0.3 s|out of memory/,
    );
  });

  // Each item is far below the limit.
  it.each([
    ["arrays", "new Array(125000).fill(1)"],
    ["buffers", "new Uint8Array(1e6)"],
    ["unfilled buffers", "new ArrayBuffer(1e6)"],
    ["strings", "'x'.repeat(1e6) + i"],
    ["strings of wide characters", "'€'.repeat(5e5) + i"],
    ["numbers of a million bits", "Array.from({ length: 8 }, (_, k) => 2n ** 999999n + BigInt(k))"],
    ["objects", "Array.from({ length: 20000 }, () => ({}))"],
    ["functions", "Array.from({ length: 20000 }, () => () => i)"],
    ["maps", "new Map(Array.from({ length: 20000 }, (_, k) => [k, k]))"],
  ])("limits the sum of many %s", async (_, item) => {
    // Not the time: a loaded machine may need more than two seconds.
    const seconds = 120;
    const code = `const all = []; for (let i = 0; i < 100; i += 1) all.push(${item});`;
    expect(reasonOf(await evaluateHere(code, ["1"], { seconds }))).toMatch(/out of memory|too large/);
    const few = `const all = []; for (let i = 0; i < 12; i += 1) all.push(${item});`;
    expect(await evaluateHere(few, ["all.length"], { seconds })).toEqual({ ok: true, values: [12] });
    expect(reasonOf(await evaluateHere(few, ["1"], { seconds, memoryMegabytes: 4 }))).toMatch(
      /out of memory|too large/,
    );
  });

  it("limits the sum of values that code in an expression keeps after it catches the error", async () => {
    const code =
      "const all = []; function grow() { try { for (;;) all.push(new Uint8Array(1e6)); } catch {} }";
    const result = await evaluateHere(
      code,
      ["grow()", "all.length"].map((one) => `(${one}, all.length)`),
      { seconds: 120 },
    );
    expect(result.ok && Number(result.values.at(-1))).toBeLessThan(34);
  });

  it.each([
    ["calls", "function f() { return f() + 1; } f()"],
    ["getters", "const o = { get x() { return this.x; } }; o.x"],
    ["proxies", "let p = {}; for (let i = 0; i < 1e5; i += 1) p = new Proxy(p, {}); p.x"],
    ["parentheses in code", "(".repeat(200_000)],
    ["brackets in JSON", "JSON.parse('['.repeat(1e6))"],
    ["arrays in arrays", "const a = []; a.push(a); a.flat(Infinity)"],
  ])("stops endless %s at the stack limit", async (_, code) => {
    expect(reasonOf(await evaluateHere(code, ["1"]))).toMatch(/stack|recursion/i);
  });

  it.each([
    ["new String('x')", "object"],
    ["new Proxy({}, {})", "object"],
    ["({ then(done) { done(1); } })", "object"],
    ["10n", "bigint"],
    ["Symbol('x')", "symbol"],
  ])("rejects the value %s", async (value, type) => {
    expect(reasonOf(await evaluateHere("", [value]))).toBe(`a value of type ${type}`);
  });

  it("cuts the message of an exception", async () => {
    const reason = reasonOf(await evaluateHere("throw new Error('x'.repeat(1e7))", ["1"]));
    expect(reason).toMatch(/^Error: x{100}/);
    expect(reason.length).toBeLessThanOrEqual(200);
  });

  it("runs pending promise jobs once", async () => {
    const code = "let seen = 0; Promise.resolve().then(() => { seen = 1; }); new Promise(() => {});";
    expect(await evaluateHere(code, ["seen"])).toEqual({ ok: true, values: [1] });
  });

  it.each([
    ["a promise that starts the next", "function f() { Promise.resolve().then(f); } f();"],
    ["an endless await", "(async () => { for (;;) await null; })();"],
    ["a loop in a promise", "Promise.resolve().then(() => { for (;;); });"],
  ])("stops %s at the time limit", async (_, code) => {
    expect(reasonOf(await evaluateHere(code, ["1"], { seconds: 0.3 }))).toBe("no end within 0.3 s");
  });

  it("rejects a long string", async () => {
    expect(reasonOf(await evaluateHere("", ["'x'.repeat(1000000)"]))).toContain("1000000 characters");
    expect(await evaluateHere("", ["'x'.repeat(10000).length"])).toEqual({ ok: true, values: [10_000] });
  });

  it("returns the values of expressions that change built-ins", async () => {
    const change = '(Object.defineProperty(Object.prototype, "kind", { get() { return "values"; } }), 5)';
    expect(await evaluateHere("", [change, "'long'"])).toEqual({ ok: true, values: [5, "long"] });
  });
});

it("ends no code because its process was stopped for a minute", async () => {
  let minutes = 0;
  vi.spyOn(performance, "now").mockImplementation(() => 60_000 * minutes++);
  const code = "let sum = 0; for (let i = 0; i < 100_000; i++) sum += i;";
  expect(await evaluateHere(code, ["sum"], { seconds: 20 })).toEqual({ ok: true, values: [4_999_950_000] });
});
