// How fast does `periodic-eval report --serve` answer over 10,000 snapshots with 1,000,000 rows, and what do 50 clients that follow a run cost
// its training? The training is a fixed amount of arithmetic in its own process, with and without clients in turn. The server is
// another process, at the priority that `train --serve` gives it. The clients are a third one, at the lowest priority: real clients
// run on other machines. Prints medians and all values.
//   npm run bench dashboard                  # everything, about ten minutes
//   npm run bench dashboard -- --part scale  # or large, or follow
import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { defineEvaluation, openSession, PeriodicCallback, everySteps, type Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot, fakeModel } from "@periodic-eval/testing";
import { median } from "./median.ts";

const { values } = parseArgs({
  options: {
    part: { type: "string" },
    train: { type: "string" },
    follow: { type: "string" },
    clients: { type: "string", default: "50" },
    rounds: { type: "string", default: "4" },
  },
});
const here = fileURLToPath(import.meta.url);
const main = fileURLToPath(new URL("../packages/cli/dist/main.js", import.meta.url));

/** Measures nothing, and stores a text for each of 100 items. */
const evaluation = defineEvaluation({
  name: "texts",
  version: "1",
  needs: ["generate"],
  items: () => Array.from({ length: 100 }, (_, at) => ({ id: `q${at}` })),
  measure: async (_model, items: readonly { readonly id: string }[]) =>
    items.map(({ id }, at) => ({ id, text: `An answer to ${id}.`, hit: at % 2 === 0 })),
  metrics: ({ rate }) => ({ hit_rate: rate((row) => row.hit, { higherIsBetter: true }) }),
});

/** Trains for a fixed amount of arithmetic, logs every step, measures 20 times, and prints its seconds. */
async function train(run: string): Promise<void> {
  const steps = 600;
  const callback = new PeriodicCallback(evaluation, { schedule: [everySteps(30)] });
  const session = openSession({
    run,
    maxSteps: steps,
    model: fakeModel(),
    callbacks: [callback],
    loggers: [],
  });
  await session.begin();
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  let value = 1;
  for (let step = 1; step <= steps; step++) {
    for (let at = 0; at < 5_000_000; at++) value = (value * 1.000001 + at) % 1e9;
    await session.stepEnd({ metrics: { loss: value } });
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - began) / 1000;
  await session.end();
  await session.close();
  console.log(JSON.stringify({ seconds, cpu: (user + system) / 1e6 }));
}

async function serve(root: string): Promise<{ child: ChildProcess; address: string }> {
  const child = spawn(process.execPath, [main, "report", root, "--serve", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return { child, address: String((await once(child.stdout, "data"))[0]).trim() };
}

const memoryOf = async ({ pid }: ChildProcess): Promise<number> =>
  Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))![1]) / 1024;

/** 100 runs of 100 snapshots with 100 rows each. */
async function scale(folder: string): Promise<void> {
  const root = join(folder, "scale");
  const store = fileStore(join(root, "run-0"));
  const rows = Array.from({ length: 100 }, (_, at) => ({
    id: `q${at}`,
    text: `An answer ${at}. `.repeat(8),
  }));
  for (let step = 1; step <= 100; step++) {
    const progress = { phase: "em", step, run_step: step, max_steps: 100, pct: step };
    await store.put(exampleSnapshot({ id: "alignment", evaluation: "alignment", ...progress }), rows);
  }
  await store.close!();
  for (let at = 1; at < 100; at++)
    await cp(join(root, "run-0"), join(root, `run-${at}`), { recursive: true });
  const { child, address } = await serve(root);
  const time = async (query: string, accept = "text/html") => {
    const began = performance.now();
    const reply = await fetch(`${address}${query}`, { headers: { Accept: accept } });
    if (!reply.ok) throw new Error(`${query}: ${reply.status}`);
    await reply.text();
    return performance.now() - began;
  };
  const show = (what: string, times: readonly number[]) =>
    console.log(
      `${what}: median ${median(times).toFixed(0)} ms, all ${times.map((ms) => ms.toFixed(0)).join(" ")}`,
    );
  const pages = ["?", "?page=2", "?page=3", "?page=4", "?page=5"];
  const inTurn = async (queries: readonly string[], accept?: string) => {
    const times: number[] = [];
    for (const query of queries) times.push(await time(query, accept));
    return times;
  };
  show("list, first time", await inTurn(pages));
  show("list, again", await inTurn(pages));
  const runs = Array.from({ length: 20 }, (_, at) => `?results_dir=run-${at * 4 + 1}`);
  show("run, first time", await inTurn(runs));
  show("run, again", await inTurn(runs));
  const before = await memoryOf(child);
  const answers = Array.from({ length: 200 }, (_, at) => {
    const of = {
      phase: "em",
      id: "alignment",
      step: String(1 + ((at * 37) % 100)),
      first: "40",
      count: "20",
    };
    return `/answers?results_dir=run-${(at * 13) % 100}&${new URLSearchParams(of).toString()}`;
  });
  const json = "application/json";
  const first = await inTurn(answers, json);
  console.log(
    `answers, first time: median ${median(first).toFixed(0)} ms, longest ${Math.max(...first).toFixed(0)} ms`,
  );
  const again = await inTurn(answers, json);
  console.log(
    `answers, again: median ${median(again).toFixed(0)} ms, longest ${Math.max(...again).toFixed(0)} ms`,
  );
  console.log(
    `memory of the server: ${before.toFixed(0)} MiB before 400 requests, ${(await memoryOf(child)).toFixed(0)} MiB after`,
  );
  child.kill();
}

/** Writes 10,000 snapshots without a store, which would read its index before each. */
async function writeManySnapshots(
  folder: string,
  names: { readonly phase: string; readonly id: string; readonly evaluation: string },
): Promise<void> {
  await mkdir(join(folder, names.phase), { recursive: true });
  const lines: string[] = [];
  for (let step = 1; step <= 10_000; step++) {
    const at = { step, run_step: step, max_steps: 10_000, pct: step / 100 };
    const { sha256: _, ...snapshot } = exampleSnapshot({ ...names, ...at });
    const sha256 = createHash("sha256")
      .update(canonicalJson(snapshot as unknown as Json))
      .digest("hex");
    const file = `${names.phase}/${names.id}_step_${step}.json`;
    await writeFile(join(folder, file), JSON.stringify({ ...snapshot, sha256 }));
    const { created_at } = snapshot;
    lines.push(JSON.stringify({ file, phase: names.phase, id: names.id, step, run_step: step, created_at }));
  }
  await writeFile(join(folder, "index.jsonl"), `${lines.join("\n")}\n`);
}

/** One run with a measurement of 1,000,000 rows, and one with 10,000 snapshots. */
async function large(folder: string): Promise<void> {
  const root = join(folder, "large");
  const rows = Array.from({ length: 1_000_000 }, (_, at) => ({
    id: `q${at}`,
    text: `An answer ${at}. `.repeat(8),
  }));
  const names = { phase: "em", id: "alignment", evaluation: "alignment" };
  const store = fileStore(join(root, "rows"));
  await store.put(exampleSnapshot({ ...names, step: 100, run_step: 100 }), rows);
  await store.close!();
  await writeManySnapshots(join(root, "snapshots", "periodic_eval"), names);
  let current = await serve(root);
  const { child } = current;
  const show = async (what: string, query: string, accept = "text/html") => {
    const { child, address } = current;
    const began = performance.now();
    const reply = await fetch(`${address}${query}`, { headers: { Accept: accept } });
    const reader = reply.body!.getReader();
    await reader.read();
    const first = performance.now() - began;
    while (!(await reader.read()).done);
    const whole = performance.now() - began;
    const memory = await memoryOf(child);
    console.log(
      `${what}: first byte ${first.toFixed(0)} ms, whole ${whole.toFixed(0)} ms, memory ${memory.toFixed(0)} MiB`,
    );
  };
  const answers = (first: number, more = "") =>
    `/answers?results_dir=rows&phase=em&id=alignment&step=100&first=${first}&count=200${more}`;
  const json = "application/json";
  const firsts = [0, 500_000, 999_800];
  // The script of a page asks for rows before they are verified, then for one row after that.
  for (const first of firsts)
    await show(`rows from ${first}, not verified`, answers(first, "&verify=later"), json);
  for (const turn of ["first time", "again"]) {
    await show(`list, ${turn}`, "?");
    await show(`page of 1,000,000 rows, ${turn}`, "?results_dir=rows");
    for (const first of firsts) await show(`rows from ${first}, ${turn}`, answers(first), json);
    await show(`page of 10,000 snapshots, ${turn}`, "?results_dir=snapshots");
    await show(`the same, all of them, ${turn}`, "?results_dir=snapshots&view=whole");
  }
  child.kill();
  await once(child, "close");
  // Another server, which has read nothing yet.
  const cold = await serve(root);
  current = cold;
  await show("list as JSON, first time", "?", json);
  await show("list as JSON, again", "?", json);
  cold.child.kill();
}

interface Counts {
  events: number;
  pages: number;
  readonly problems: string[];
}

/** Follows a folder until it is aborted, and requests the page at each change. */
async function followRun(address: string, signal: AbortSignal, counts: Counts): Promise<void> {
  const page = async () => {
    const reply = await fetch(address, { headers: { Accept: "text/html" } });
    const text = await reply.text();
    counts.pages++;
    if (reply.status !== 200 || !text.trimEnd().endsWith("</html>"))
      counts.problems.push(`status ${reply.status}`);
    if (/cannot be shown|damaged/.test(text.replace(/<(style|script)[^]*?<\/\1>/g, "")))
      counts.problems.push("a torn read");
  };
  try {
    await page();
    for (let shown: unknown; ; await delay(2000, undefined, { signal })) {
      const reply = await fetch(address.replace("/v1/eval", "/v1/eval/version"));
      if (reply.status !== 200) counts.problems.push(`version: status ${reply.status}`);
      const { version } = (await reply.json()) as { readonly version: unknown };
      if (version === shown) continue;
      shown = version;
      counts.events++;
      await page();
    }
  } catch (error) {
    if (!signal.aborted) counts.problems.push(String(error));
  }
}

/** Follows a folder with all clients until the parent process closes the input, and prints what they counted. */
async function followAll(address: string): Promise<void> {
  const counts: Counts = { events: 0, pages: 0, problems: [] };
  const end = new AbortController();
  const clients = Array.from({ length: Number(values.clients) }, () =>
    followRun(address, end.signal, counts),
  );
  await once(process.stdin.resume(), "end");
  end.abort();
  await Promise.all(clients);
  console.log(JSON.stringify(counts));
}

/** Starts this file with more arguments. */
const startThisFile = (...args: readonly string[]) =>
  spawn(process.execPath, [...process.execArgv, here, "--clients", values.clients, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });

const trainOnce = async (run: string) =>
  (await json(startThisFile("--train", run).stdout)) as { seconds: number; cpu: number };

async function follow(folder: string): Promise<void> {
  const root = join(folder, "followed");
  await cp(here, join(root, "placeholder.ts"));
  const sides: Record<"alone" | "followed", { seconds: number; cpu: number }[]> = { alone: [], followed: [] };
  const counts: Counts = { events: 0, pages: 0, problems: [] };
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const side of round % 2 === 0
      ? (["alone", "followed"] as const)
      : (["followed", "alone"] as const)) {
      const run = join(root, `${side}-${round}`);
      if (side === "alone") {
        sides.alone.push(await trainOnce(run));
        continue;
      }
      const { child, address } = await serve(root);
      setPriority(child.pid!, constants.priority.PRIORITY_BELOW_NORMAL);
      const clients = startThisFile("--follow", address);
      setPriority(clients.pid!, constants.priority.PRIORITY_LOW);
      sides.followed.push(await trainOnce(run));
      clients.stdin.end();
      const { events, pages, problems } = (await json(clients.stdout)) as Counts;
      counts.events += events;
      counts.pages += pages;
      counts.problems.push(...problems);
      child.kill();
    }
  }
  for (const [side, times] of Object.entries(sides))
    console.log(
      `${side}: median ${median(times.map(({ seconds }) => seconds)).toFixed(2)} s (${times.map(({ seconds }) => seconds.toFixed(2)).join(" ")}), CPU ${median(times.map(({ cpu }) => cpu)).toFixed(2)} s (${times.map(({ cpu }) => cpu.toFixed(2)).join(" ")})`,
    );
  const change = (of: "seconds" | "cpu") =>
    `${(100 * (median(sides.followed.map((run) => run[of])) / median(sides.alone.map((run) => run[of])) - 1)).toFixed(1)} %`;
  console.log(`change: ${change("seconds")} of wall time, ${change("cpu")} of CPU time`);
  console.log(
    `${values.clients} clients: ${counts.events} events, ${counts.pages} pages, ${counts.problems.length} problems ${counts.problems.slice(0, 3).join("; ")}`,
  );
}

if (values.train !== undefined) await train(values.train);
else if (values.follow !== undefined) await followAll(values.follow);
else {
  const folder = await mkdtemp(join(tmpdir(), "bench-dashboard-"));
  const isAsked = (part: string) => values.part === undefined || values.part === part;
  if (isAsked("scale")) await scale(folder);
  if (isAsked("large")) await large(folder);
  if (isAsked("follow")) await follow(folder);
  await rm(folder, { recursive: true });
}
