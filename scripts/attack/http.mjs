// Abuses the results server with raw requests, and clients with bad servers. Afterwards a server still
// answers a good request quickly, and no reply has contained a path, a key or a file outside the served folder.
import { linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { namedStream } from "@periodic-eval/core/random";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { serveResults } from "@periodic-eval/dashboard/server";
import { hub, judge, key, logger } from "./bad-servers.mjs";
import { mutate } from "./mutate.mjs";

const secret = "SECRET-outside";
/** Hangs take longer; a good request takes milliseconds on an idle machine. */
const quickMs = 10_000;

async function resultsTargets(folder) {
  const root = join(folder, "root");
  const outside = join(folder, "outside");
  // A worker that a failure ended leaves them.
  for (const left of [root, outside]) rmSync(left, { recursive: true, force: true });
  for (const [runDir, reason] of [
    [join(root, "run"), null],
    [outside, secret],
  ]) {
    const store = fileStore(runDir);
    for (const step of [0, 20, 40])
      await store.put(exampleSnapshot({ step, ...(reason && { reason, status: "partial" }) }), [
        { id: "q1", correct: true },
      ]);
    await store.close();
  }
  writeFileSync(join(outside, "secret.txt"), secret);
  symlinkSync(outside, join(root, "link"));
  mkdirSync(join(root, "hard/periodic_eval/train"), { recursive: true });
  linkSync(
    join(outside, "periodic_eval/train/capability_step_0.json"),
    join(root, "hard/periodic_eval/train/capability_step_0.json"),
  );
  const dirs = [
    "",
    "run",
    "link",
    "hard",
    "../outside",
    outside,
    "..%2foutside",
    "run/../../outside",
    "/etc",
    "run%00",
    "%2e%2e",
    "....//",
    "C:\\",
    "\\\\x",
    "~",
    "%",
    "é",
    "run/".repeat(2000),
  ];
  const paths = dirs.flatMap((dir) => [
    `/v1/eval?results_dir=${dir}`,
    `/v1/eval?results_dir=${encodeURIComponent(dir)}&steps=all`,
  ]);
  const targets = [];
  for (const token of [undefined, key]) {
    const { address, close } = await serveResults({ root, port: 0, ...(token && { token }) });
    targets.push({
      name: "results",
      url: new URL(address),
      paths: [...paths, "/", "/v1/eval", "/v1/eval?page=-1", "/v1/eval?page=9&per_page=200&page=1"],
      close,
    });
  }
  return targets;
}

/** Returns the bytes of a request, most of whose parts may be wrong. */
function rawRequest({ url, paths }, random, pick) {
  const method = pick([
    "GET",
    "GET",
    "GET",
    "POST",
    "POST",
    "POST",
    "HEAD",
    "PUT",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "get",
    "\u0000",
    "M".repeat(5000),
  ]);
  const body = random() < 0.5 ? "x" : mutate("{}", "json", random);
  const bytes = Buffer.from(body);
  const wrongLength = [-1, 0, 1, bytes.length + 50, 1e18, "1e3", "0x10", "5, 5", ""];
  const headers = [
    [
      0.9,
      `Host: ${pick([url.host, url.host, url.host, url.host, "evil.example", "", "localhost", "[::1]", `${url.host}@evil`])}`,
    ],
    [
      0.7,
      `Authorization: ${pick([`Bearer ${key}`, `Bearer ${key}`, `Bearer ${key}x`, "Bearer", `Basic ${btoa(`:${key.slice(1)}`)}`, "é".repeat(50), "Bearer \u0001"])}`,
    ],
    [0.8, "Content-Type: application/json"],
    [0.7, `Content-Length: ${random() < 0.8 ? bytes.length : pick(wrongLength)}`],
    [0.05, `Content-Length: ${pick(wrongLength)}`],
    [0.15, `Transfer-Encoding: ${pick(["chunked", "gzip, chunked", "identity", "x"])}`],
    [0.1, `Expect: ${pick(["100-continue", "x"])}`],
    [0.1, `Origin: ${pick(["http://evil.example", "null", url.origin])}`],
    [0.2, `Accept: ${pick(["application/json", "*/*", "text/html;q=nan", ",".repeat(3000)])}`],
    [0.1, `Connection: ${pick(["close", "keep-alive", "upgrade", "x"])}\r\nUpgrade: websocket`],
    [0.1, `Range: bytes=${pick(["0-1", "-1", "9-0"])}`],
    [0.05, `X-Long: ${"x".repeat(pick([5000, 20_000, 200_000]))}`],
    [0.03, Array.from({ length: 3000 }, (_, at) => `X-${at}: y`).join("\r\n")],
    [0.05, pick(["no colon", " folded", "X:\u0000", ": x", "__proto__: x"])],
  ];
  const lines = headers.filter(([share]) => random() < share).map(([, line]) => line);
  const version = pick(["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "X"]);
  const head = `${method} ${random() < 0.1 ? url.origin : ""}${pick(paths)} ${version}\r\n${lines.join("\r\n")}\r\n\r\n`;
  const chunk = pick([`${bytes.length.toString(16)}\r\n`, "fffffffff\r\n", "-1\r\n", ""]);
  return Buffer.concat([
    Buffer.from(head, "latin1"),
    Buffer.from(head.includes("chunked") ? chunk : ""),
    bytes,
  ]);
}

/** Sends requests on one connection, whole or in part, and stays, waits or leaves. Returns the connection. */
function abuse(target, random, pick) {
  const count = pick([1, 1, 1, 2, 20]);
  let bytes = Buffer.concat(Array.from({ length: count }, () => rawRequest(target, random, pick)));
  if (random() < 0.4) bytes = bytes.subarray(0, Math.floor(bytes.length * random()));
  const socket = connect(Number(target.url.port), target.url.hostname);
  let received = "";
  socket
    .on("error", () => undefined)
    .on("data", (piece) => (received = (received + piece.toString("latin1")).slice(-1_000_000)));
  const cut = Math.floor(bytes.length * random());
  socket.write(bytes.subarray(0, cut));
  const timers = [setTimeout(() => socket.write(bytes.subarray(cut)), pick([0, 1, 10]))];
  const leave = pick([null, null, null, "destroy", "destroy", "resetAndDestroy", "end"]);
  if (leave !== null) timers.push(setTimeout(() => socket[leave](), 30 * random()));
  return {
    socket,
    sent: bytes,
    end: () => (timers.forEach(clearTimeout), socket.destroy()),
    received: () => received,
  };
}

async function good({ url }) {
  const started = performance.now();
  const reply = await fetch(new URL("/v1/eval?results_dir=run", url), {
    headers: { authorization: `Bearer ${key}`, accept: "application/json" },
    signal: AbortSignal.timeout(quickMs),
  });
  const text = await reply.text();
  if (reply.status !== 200)
    throw new Error(
      `a good request got ${reply.status} after ${Math.round(performance.now() - started)} ms: ${text.slice(0, 300)}`,
    );
}

export async function http(folder) {
  const targets = await resultsTargets(folder);

  async function attackServer(target, random) {
    const pick = (list) => list[Math.floor(list.length * random())];
    const all = Array.from({ length: pick([1, 3, 10, 40]) }, () => abuse(target, random, pick));
    await sleep(pick([0, 20, 60]));
    await good(target);
    await sleep(10);
    for (const one of all) one.end();
    await good(target);
    for (const { received, sent } of all) {
      const text = received();
      const leak = [key, secret, folder, "node_modules", "\n    at "].find(
        (one) => text.includes(one) && !sent.includes(one),
      );
      if (leak !== undefined)
        throw new Error(
          `a reply contains ${leak}: ${text.slice(0, 500)}\nto ${sent.toString("latin1").slice(0, 500)}`,
        );
      const status = /^HTTP\/1\.1 (?!1|2|3|4|501|503|505)\d+/m.exec(text)?.[0];
      if (status !== undefined) throw new Error(`${status} to ${sent.toString("latin1").slice(0, 1500)}`);
    }
  }

  const kinds = [...targets, ...targets, judge, hub, logger];
  const attack = async (seed) => {
    const random = namedStream(seed);
    const kind = kinds[Math.floor(kinds.length * random())];
    return typeof kind === "function" ? kind(random, folder) : attackServer(kind, random);
  };
  return Object.assign(attack, { close: () => Promise.all(targets.map(({ close }) => close())) });
}
