import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { exampleSnapshot } from "../../testing/example-snapshot.ts";
import { faultyFiles } from "../../testing/faulty-files.ts";
import { fileStore } from "./file-store.ts";
import { nodeFiles, type FileSystem } from "./file-system.ts";
import { keepLock, readWriter, takeLock, thisProcess, withLock } from "./lock.ts";
import { temporaryFolder } from "../../testing/temporary-folder.test-data.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder, ".lock");
});

const heldBy = (changes: object) =>
  writeFile(path, JSON.stringify({ pid: 1, host: hostname(), process_start: null, token: "t", ...changes }));

it("refuses a second session on one run with an error that names the holder", async () => {
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

it("refuses the lock of a live process and replaces it once that process has ended", async () => {
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

it("replaces a lock of an earlier process with the same id as this one", async () => {
  await heldBy({ pid: process.pid });
  await (
    await takeLock(path, nodeFiles)
  )();
});

it.runIf(process.platform === "linux")(
  "replaces a lock whose process id now belongs to a process that started later",
  async () => {
    await heldBy({ pid: process.ppid, process_start: "0" });
    await (
      await takeLock(path, nodeFiles)
    )();
    expect(thisProcess.processStart).toMatch(/^\d+$/);
  },
);

it("refuses a lock from another machine with an error that names the file to delete", async () => {
  await heldBy({ host: "elsewhere", pid: 7 });
  await expect(takeLock(path, nodeFiles)).rejects.toThrow(`process 7 on "elsewhere"`);
  await expect(takeLock(path, nodeFiles)).rejects.toThrow(`delete ${path}`);
});

it.each(["", "{", '{"pid": 1}'])("replaces a lock file that names no holder (%j)", async (text) => {
  await writeFile(path, text);
  await (
    await takeLock(path, nodeFiles)
  )();
});

it("gives a stale lock to exactly one of many that take it at once", async () => {
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

it("replaces the lock after a process died while it replaced a stale one", async () => {
  const pid = Number(execFileSync(process.execPath, ["-p", "process.pid"], { encoding: "utf8" }));
  await heldBy({ pid });
  const dying = faultyFiles(({ name, path: at }) => (name === "rename" && at === path ? "die" : "none"));
  await expect(takeLock(path, dying, { ...thisProcess, pid })).rejects.toThrow("dead");
  expect(await readdir(folder)).toHaveLength(3); // the stale lock, the claim on it, and the draft of the new lock
  const release = await takeLock(path, nodeFiles);
  await expect(takeLock(path, nodeFiles)).rejects.toThrow("held by process");
  await release();
});

it("keeps the lock that another process took after this one had found it stale", async () => {
  const pid = Number(execFileSync(process.execPath, ["-p", "process.pid"], { encoding: "utf8" }));
  await heldBy({ pid });
  let release: (() => Promise<void>) | null = null;
  const slow: FileSystem = {
    ...nodeFiles,
    async link(from, to) {
      // The claim comes after the check for a live holder: in between the other process takes the lock.
      if (to !== path) release ??= await takeLock(path, nodeFiles);
      await nodeFiles.link(from, to);
    },
  };
  await expect(takeLock(path, slow)).rejects.toThrow("held by process");
  await release!();
  expect(await readdir(folder)).toEqual([]);
});

it("locks on a file system without links", async () => {
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

it("withLock runs ten concurrent increments without losing one", async () => {
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

it("withLock releases the lock if the work throws, and waits at most waitSeconds", async () => {
  const fail = () => Promise.reject(new Error("work failed"));
  await expect(withLock(path, fail, { fs: nodeFiles })).rejects.toThrow("work failed");
  const release = await takeLock(path, nodeFiles);
  const waiting = withLock(path, async () => 0, { fs: nodeFiles, waitSeconds: 0.05 });
  await expect(waiting).rejects.toThrow(`a lock held by process ${process.pid}`);
  await release();
  // A process on another machine cannot be checked, so `withLock` does not wait for it.
  await heldBy({ host: "elsewhere", pid: 7 });
  await expect(withLock(path, async () => 0, { fs: nodeFiles })).rejects.toThrow(`process 7 on "elsewhere"`);
});

it("throws an error that names a file in the place of the run folder", async () => {
  await writeFile(join(folder, "run"), "");
  await expect(fileStore(join(folder, "run")).open!()).rejects.toThrow(
    /periodic_eval: got (ENOTDIR|EEXIST) .*Move that file away/,
  );
});

it("keepLock lends the lock to one session of this process at a time, and to no other process", async () => {
  const lock = join(folder, "periodic_eval", ".lock");
  await nodeFiles.makeFolder(join(folder, "periodic_eval"));
  const release = await keepLock(lock, nodeFiles);
  const first = fileStore(folder);
  await first.open!();
  await expect(fileStore(folder).open!()).rejects.toThrow("a lock held by process");
  await first.close!();
  expect((await readWriter(lock, nodeFiles))?.isAlive).toBe(true);
  const second = fileStore(folder);
  await second.open!();
  await second.close!();
  await release();
  expect(await readWriter(lock, nodeFiles)).toBeNull();
});
