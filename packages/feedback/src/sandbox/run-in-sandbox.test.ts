import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runInSandbox, type SandboxResult } from "./run-in-sandbox.ts";

const reasonOf = (result: SandboxResult): string =>
  result.ok ? `came out: ${result.values.join()}` : result.reason;

describe.concurrent("runInSandbox", { timeout: 300_000 }, () => {
  it("gives what expressions say after the code", async () => {
    const code = "function add(a, b) { return a + b; }";
    expect(await runInSandbox(code, ["add(1, 2)", "add('a', 'b')", "add(0.1, 0.2) > 0.3", "null"])).toEqual({
      ok: true,
      values: [3, "ab", true, null],
    });
  });

  it("hands out each number as it is, and no text that would change on the way", async () => {
    const numbers = ["NaN", "-Infinity", "-0", "Number.MAX_VALUE"];
    expect(await runInSandbox("", numbers)).toEqual({
      ok: true,
      values: [NaN, -Infinity, -0, Number.MAX_VALUE],
    });
    expect(await runInSandbox("", ["'né 🙂'"])).toEqual({ ok: true, values: ["né 🙂"] });
    // What one of them adds to the text that comes out, another may take away.
    const broken = [
      String.raw`'right\0wrong'`,
      String.raw`'\ud800'`,
      String.raw`'\udc00\ud800'`,
      String.raw`'yes\ud800\0n'`,
    ];
    const blind = "(''.__proto__.charCodeAt = () => 65, Function.prototype.call = () => 65, 1)";
    const told = await Promise.all(
      broken.map(async (text) => reasonOf(await runInSandbox("", [blind, text]))),
    );
    for (const reason of told) expect(reason).toContain("a NUL or half a pair of surrogates");
  });

  it("tells why code fails", async () => {
    expect(reasonOf(await runInSandbox("function f( {", []))).toContain("SyntaxError");
    expect(reasonOf(await runInSandbox("throw new Error('on purpose')", []))).toBe("Error: on purpose");
    expect(reasonOf(await runInSandbox("throw { get message() { throw 1; } }", []))).toBeTruthy();
    expect(reasonOf(await runInSandbox("", ["missing(1)"]))).toContain("ReferenceError");
    expect(reasonOf(await runInSandbox("", ["({})"]))).toBe("a value of type object");
    expect(reasonOf(await runInSandbox("", ["Promise.resolve(1)"]))).toBe("a value of type object");
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
      "memory that is shared",
      "new SharedArrayBuffer(8); Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)",
    ],
    ["QuickJS's own modules", "std.loadFile('/etc/passwd') + os.getcwd()"],
  ])("%s is out of reach", async (_, code) => {
    expect(reasonOf(await runInSandbox(code, ["1"]))).toMatch(/ReferenceError|TypeError|Error: no/);
    expect(existsSync(file)).toBe(false);
  });

  it.each([
    ["an endless loop", "for (;;) {}", "1"],
    ["a loop in an expression", "function f() { while (true); }", "f()"],
    ["a regular expression that explodes", "/^(a+)+$/.test('a'.repeat(40) + 'b')", "1"],
    ["a loop that catches", "for (;;) { try { for (;;) {} } catch {} }", "1"],
    ["a number that grows", "let n = 7n; for (;;) n = n * n;", "1"],
    ["a list of nothing", "new Array(2 ** 32 - 1).join('x')", "1"],
    ["an exception whose words have no end", "throw { get name() { for (;;); } }", "1"],
    ["a comparison without end", "[2, 1].sort(() => { for (;;); })", "1"],
    ["a getter of what comes out", "", "({ get x() { for (;;); } }).x"],
    ["a list of one's own that never ends", "[...{ [Symbol.iterator]: () => ({ next: () => ({}) }) }]", "1"],
    ["a generator without end", "[...(function* () { for (;;) yield 0; })()]", "1"],
  ])("%s ends with the time", async (_, code, expression) => {
    expect(reasonOf(await runInSandbox(code, [expression], { seconds: 0.3, memoryMegabytes: 8 }))).toMatch(
      /no end within 0.3 s|out of memory/,
    );
  });

  it.each([
    ["a growing list", "const a = []; for (;;) a.push(new Array(1000).fill(1));"],
    ["a doubling text", "let s = 'x'; for (;;) s += s;"],
    ["one large buffer", "new Uint8Array(2 ** 31 - 1)"],
    ["text in large numbers", "const all = []; for (;;) all.push('x'.repeat(100000) + all.length);"],
  ])("%s meets the limit of memory", async (_, code) => {
    const before = process.memoryUsage().rss;
    expect(reasonOf(await runInSandbox(code, ["1"]))).toMatch(/memory|array length|string too long|no end/);
    // Of the 32 MB that the code may take, none is taken here.
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  });

  it.each([
    ["calls", "function f() { return f() + 1; } f()"],
    ["getters", "const o = { get x() { return this.x; } }; o.x"],
    ["proxies", "let p = {}; for (let i = 0; i < 1e5; i += 1) p = new Proxy(p, {}); p.x"],
    ["brackets of code", "(".repeat(200_000)],
    ["brackets of data", "JSON.parse('['.repeat(1e6))"],
    ["a list in itself", "const a = []; a.push(a); a.flat(Infinity)"],
  ])("%s meet the limit of the stack", async (_, code) => {
    expect(reasonOf(await runInSandbox(code, ["1"]))).toMatch(/stack|recursion/i);
  });

  it.each([
    ["new String('x')", "object"],
    ["new Proxy({}, {})", "object"],
    ["({ then(done) { done(1); } })", "object"],
    ["10n", "bigint"],
    ["Symbol('x')", "symbol"],
  ])("does not hand out %s", async (value, type) => {
    expect(reasonOf(await runInSandbox("", [value]))).toBe(`a value of type ${type}`);
  });

  it("cuts what an exception says", async () => {
    const said = reasonOf(await runInSandbox("throw new Error('x'.repeat(1e7))", ["1"]));
    expect(said).toMatch(/^Error: x{100}/);
    expect(said.length).toBeLessThanOrEqual(200);
  });

  it("lets promises run as far as they go by themselves", async () => {
    const code = "let seen = 0; Promise.resolve().then(() => { seen = 1; }); new Promise(() => {});";
    expect(await runInSandbox(code, ["seen"])).toEqual({ ok: true, values: [1] });
  });

  it.each([
    ["a promise that asks for the next", "function f() { Promise.resolve().then(f); } f();"],
    ["a wait without end", "(async () => { for (;;) await null; })();"],
    ["a loop behind a promise", "Promise.resolve().then(() => { for (;;); });"],
  ])("%s ends with the time", async (_, code) => {
    expect(reasonOf(await runInSandbox(code, ["1"], { seconds: 0.3 }))).toBe("no end within 0.3 s");
  });

  it("fails code that asks for a module, though it goes on without it", async () => {
    for (const code of ['import("fs").then((fs) => fs.rmSync("/"));', 'import("node:fs").catch(() => {});'])
      expect(reasonOf(await runInSandbox(code, ["1"]))).toMatch(
        /^a module \((node:)?fs\), of which there are none$/,
      );
  });

  it("hands out no long text", async () => {
    expect(reasonOf(await runInSandbox("", ["'x'.repeat(1000000)"]))).toContain("1000000 characters");
    expect(await runInSandbox("", ["'x'.repeat(10000).length"])).toEqual({ ok: true, values: [10_000] });
  });

  it.each([
    ["Object.prototype", "Object.prototype.polluted = true;"],
    ["Object.prototype", "({}).__proto__.polluted = true;"],
    ["Array.prototype.push", "Array.prototype.push = () => 0;"],
    ["Function.prototype.call", "Function.prototype.call = () => 0; Reflect.ownKeys = () => [];"],
    ["JSON.stringify", 'JSON.stringify = () => "[1]";'],
    ["globalThis.eval", "globalThis.eval = () => 1;"],
    ["Array.prototype", "delete Array.prototype.map;"],
    ["Array.prototype", "Object.setPrototypeOf(Array.prototype, { then: 1 });"],
    ["RegExp.prototype.flags", 'Object.defineProperty(RegExp.prototype, "flags", { get: () => "g" });'],
    ["Number.prototype.valueOf", "Promise.resolve().then(() => { Number.prototype.valueOf = () => 55; });"],
  ])("fails code that changes %s, and keeps that to itself", async (what, code) => {
    expect(reasonOf(await runInSandbox(code, ["1"]))).toBe(`a change of what is built in: ${what}`);
    expect("polluted" in {}).toBe(false);
    expect([].push.name).toBe("push");
  });

  it("hands out what expressions say, whatever they change", async () => {
    const change = '(Object.defineProperty(Object.prototype, "kind", { get() { return "values"; } }), 5)';
    expect(await runInSandbox("", [change, "'long'"])).toEqual({ ok: true, values: [5, "long"] });
  });

  it("starts anew each time", async () => {
    await runInSandbox("globalThis.left = 1", ["1"]);
    expect(await runInSandbox("", ["typeof left"])).toEqual({ ok: true, values: ["undefined"] });
  });

  it("refuses limits that are none", async () => {
    await expect(runInSandbox("", [], { seconds: 0 })).rejects.toThrow("sandbox limits.seconds");
    await expect(runInSandbox("", [], { minutes: 1 } as never)).rejects.toThrow("minutes");
  });
});
