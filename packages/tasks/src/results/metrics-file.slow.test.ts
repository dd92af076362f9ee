import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { namedStream } from "@periodic-eval/core/random";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleRun } from "./example-run.test-data.ts";
import { appendRun, readMetrics } from "./metrics-file.ts";

describe("with several processes", () => {
  const processes = 6;
  const each = 30;
  const kills = 20;
  let shared: string;
  let path: string;
  const namesIn = async () => (await readMetrics(path)).runs.map(({ name }) => name);
  /** Processes that start while other tests run, because their start takes most of the time of these tests. */
  const waiting: Adder[] = [];
  beforeAll(async () => {
    shared = await mkdtemp(join(tmpdir(), "metrics-"));
    path = join(shared, "metrics.json");
    for (let i = 0; i < processes; i++) waiting.push(startAdder(path));
  });
  afterAll(async () => {
    await Promise.all(waiting.map((adder) => adder.stop()));
    await rm(shared, { recursive: true });
  });

  it(`keeps every run when ${processes} processes add ${each} runs each at the same time`, async () => {
    const adders = waiting.slice(0, processes);
    const said = await Promise.all(adders.map((adder, i) => adder.add(`p${i}`, each)));
    const names = await namesIn();
    expect(new Set(names)).toEqual(new Set(said.flat()));
    expect(names).toHaveLength(processes * each);
    for (let i = 0; i < processes; i++)
      expect(names.filter((name) => name.startsWith(`p${i}-`))).toEqual(said[i]);
  });

  it(
    `keeps every reported run over ${kills} kills in the middle of appends`,
    { timeout: kills * 60_000 },
    async () => {
      await rm(path, { force: true });
      const random = namedStream("append-storm");
      await appendRun(path, { ...exampleRun, name: "first" });
      const said = ["first"];
      for (let kill = 0; kill < kills; kill++) {
        const adder = waiting.pop() ?? startAdder(path);
        said.push(...(await adder.add(`k${kill}`, 10_000, Math.round(20 + 300 * random()))));
        const names = await namesIn();
        expect(names).toEqual(expect.arrayContaining(said));
        // Each kill may leave one run that is written but not yet reported.
        expect(names.length - said.length).toBeLessThanOrEqual(kill + 1);
        expect(new Set(names).size).toBe(names.length);
      }
      await appendRun(path, { ...exampleRun, name: "last" });
      expect(await readdir(shared)).toEqual(["metrics.json"]);
    },
  );
});

interface Adder {
  /** Adds runs `<name>-0`, `<name>-1`, …; returns those reported to be in the file. Kills the process after `killAfter` ms. */
  add(name: string, count: number, killAfter?: number): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** Starts a process that adds runs to the file. */
function startAdder(file: string): Adder {
  const child = fileURLToPath(new URL("append-run-child.test-data.ts", import.meta.url));
  const args = ["--import", "tsx", "-C", "@periodic-eval/source", child, file];
  const node = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const closed = once(node, "close");
  const lines = createInterface({ input: node.stdout })[Symbol.asyncIterator]();
  const ready = lines.next();
  return {
    async add(name, count, killAfter) {
      await ready;
      node.stdin.write(`${name} ${count}\n`);
      const timer = killAfter === undefined ? undefined : setTimeout(() => node.kill("SIGKILL"), killAfter);
      const said: string[] = [];
      for (
        let next = await lines.next();
        next.done !== true && next.value !== "done";
        next = await lines.next()
      )
        said.push(next.value);
      clearTimeout(timer);
      if (killAfter !== undefined) await closed;
      // A kill may truncate the last line.
      return said.filter((line) => line.startsWith(name) && /-\d+$/.test(line));
    },
    async stop() {
      node.stdin.end();
      await closed;
    },
  };
}
