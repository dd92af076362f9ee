import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { exampleSnapshot } from "../../testing/example-snapshot.ts";
import { faultyFiles } from "../../testing/faulty-files.ts";
import { fileStore } from "./file-store.ts";
import { nodeFiles, type FileSystem } from "./files.ts";
import { takeLock, thisProcess, withLock } from "./lock.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "periodic-eval-lock-"));
  path = join(folder, ".lock");
});
afterEach(() => rm(folder, { recursive: true }));

const heldBy = (changes: object) =>
  writeFile(path, JSON.stringify({ pid: 1, host: hostname(), process_start: null, token: "t", ...changes }));

it("a second session on one run is an error that names the holder", async () => {
  const first = fileStore(folder);
  await first.open!();
  const second = fileStore(folder);
  await expect(second.open!()).rejects.toThrow(`a lock held by process ${process.pid} (this one)`);
  await expect(second.put(exampleSnapshot(), [])).rejects.toThrow("choose another run folder");
  expect(await second.list()).toEqual([]); // reading needs no lock
  await first.close!();
  await second.open!();
  await second.close!();
});

it("another process that lives holds its lock; once it is gone, the lock is taken over", async () => {
  const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  await once(child, "spawn");
  await heldBy({ pid: child.pid });
  await expect(takeLock(path, nodeFiles)).rejects.toThrow(`process ${child.pid}`);
  child.kill("SIGKILL");
  await once(child, "exit");
  const release = await takeLock(path, nodeFiles);
  expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ pid: process.pid });
  await release();
  await expect(readFile(path)).rejects.toThrow("ENOENT");
});

it("a lock left by an earlier process of our own number is taken over", async () => {
  await heldBy({ pid: process.pid });
  await (
    await takeLock(path, nodeFiles)
  )();
});

it.runIf(process.platform === "linux")(
  "a living process that started later than the lock says is not its holder",
  async () => {
    await heldBy({ pid: process.ppid, process_start: "0" });
    await (
      await takeLock(path, nodeFiles)
    )();
    expect(thisProcess.processStart).toMatch(/^\d+$/);
  },
);

it("a lock from another machine is an error that says what to delete", async () => {
  await heldBy({ host: "elsewhere", pid: 7 });
  await expect(takeLock(path, nodeFiles)).rejects.toThrow(`process 7 on "elsewhere"`);
  await expect(takeLock(path, nodeFiles)).rejects.toThrow(`delete ${path}`);
});

it.each(["", "{", '{"pid": 1}'])("a lock file that says nothing (%j) is taken over", async (text) => {
  await writeFile(path, text);
  await (
    await takeLock(path, nodeFiles)
  )();
});

it("of many that take a stale lock at once, one gets it", async () => {
  const pid = Number(execFileSync(process.execPath, ["-p", "process.pid"], { encoding: "utf8" }));
  for (let round = 0; round < 20; round++) {
    await heldBy({ pid });
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => takeLock(path, nodeFiles)));
    const winners = outcomes.filter((outcome) => outcome.status === "fulfilled");
    expect(winners).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(String(outcome.reason)).toContain("held by process");
    await winners[0]!.value();
    expect(await readdir(folder)).toEqual([]);
  }
});

it("a process that died while it took a stale lock over is followed by the next", async () => {
  const pid = Number(execFileSync(process.execPath, ["-p", "process.pid"], { encoding: "utf8" }));
  await heldBy({ pid });
  const dying = faultyFiles(({ name, path: at }) => (name === "rename" && at === path ? "die" : "none"));
  await expect(takeLock(path, dying, { ...thisProcess, pid })).rejects.toThrow("dead");
  expect(await readdir(folder)).toHaveLength(3); // the stale lock, the claim on it, and the draft that was to replace it
  const release = await takeLock(path, nodeFiles);
  await expect(takeLock(path, nodeFiles)).rejects.toThrow("held by process");
  await release();
});

it("one that judged a lock stale before another took it over does not take it from that other", async () => {
  const pid = Number(execFileSync(process.execPath, ["-p", "process.pid"], { encoding: "utf8" }));
  await heldBy({ pid });
  let release: (() => Promise<void>) | null = null;
  const slow: FileSystem = {
    ...nodeFiles,
    async link(from, to) {
      // The claim comes after the judgement: meanwhile the other does all of its work.
      if (to !== path) release ??= await takeLock(path, nodeFiles);
      await nodeFiles.link(from, to);
    },
  };
  await expect(takeLock(path, slow)).rejects.toThrow("held by process");
  await release!();
  expect(await readdir(folder)).toEqual([]);
});

it("a file system without links still locks", async () => {
  const fs = {
    ...nodeFiles,
    link: () => Promise.reject(Object.assign(new Error("no links"), { code: "EPERM" })),
  };
  const release = await takeLock(path, fs);
  await expect(takeLock(path, fs)).rejects.toThrow("held by process");
  await release();
  await (
    await takeLock(path, fs)
  )();
});

it("withLock waits for its turn: of ten at once each adds one, and none is lost", async () => {
  const count = join(folder, "count");
  await writeFile(count, "0");
  const addOne = () =>
    withLock(
      path,
      async () => {
        const before = Number(await readFile(count, "utf8"));
        await new Promise(setImmediate); // without the lock, the others would read the same number meanwhile
        await writeFile(count, String(before + 1));
      },
      { fs: nodeFiles },
    );
  await Promise.all(Array.from({ length: 10 }, addOne));
  expect(await readFile(count, "utf8")).toBe("10");
  expect((await readdir(folder)).sort()).toEqual(["count"]);
});

it("withLock gives the lock back where the work throws, and waits no longer than it is told", async () => {
  const fail = () => Promise.reject(new Error("work failed"));
  await expect(withLock(path, fail, { fs: nodeFiles })).rejects.toThrow("work failed");
  const release = await takeLock(path, nodeFiles);
  const waiting = withLock(path, async () => 0, { fs: nodeFiles, waitSeconds: 0.05 });
  await expect(waiting).rejects.toThrow(`a lock held by process ${process.pid}`);
  await release();
  // No one here can tell whether a process of another machine lives: it is not waited for.
  await heldBy({ host: "elsewhere", pid: 7 });
  await expect(withLock(path, async () => 0, { fs: nodeFiles })).rejects.toThrow(`process 7 on "elsewhere"`);
});

it("a run folder that is a file is an error that names it", async () => {
  await writeFile(join(folder, "run"), "");
  await expect(fileStore(join(folder, "run")).open!()).rejects.toThrow(
    /periodic_eval: got (ENOTDIR|EEXIST) .*Move that file away/,
  );
});
