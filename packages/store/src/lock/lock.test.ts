import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { exampleSnapshot } from "@periodic-eval/testing";
import { faultyFiles } from "../../../testing/src/faulty-files.test-data.ts";
import { lockText } from "../../../testing/src/lock-file.test-data.ts";
import { fileStore } from "../snapshots/file-store.ts";
import { nodeFiles, type FileSystem } from "../files/file-system.ts";
import { keepLock, readWriter, takeLock, withLock } from "./lock.ts";
import { checksUntilLost, thisProcess, type LockHolder, type LockOwner } from "./lock-owner.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder, ".lock");
});

const heldBy = (changes: Partial<LockHolder>) => writeFile(path, lockText(changes));

/** A process that checks at locks without waiting; `onCheck` runs at each check, with its number from 1. */
function checkingOwner(
  onCheck: (check: number) => unknown = () => undefined,
): LockOwner & { checks: number } {
  return {
    ...thisProcess,
    checks: 0,
    async nextCheck() {
      this.checks += 1;
      await onCheck(this.checks);
    },
  };
}
const quiet = { onWait: () => undefined };

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
  await heldBy({ pid: child.pid! });
  await expect(takeLock(path, nodeFiles)).rejects.toThrow(`process ${child.pid}`);
  child.kill("SIGKILL");
  await once(child, "exit");
  const { release } = await takeLock(path, nodeFiles);
  expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ pid: process.pid });
  await release();
  await expect(readFile(path)).rejects.toThrow("ENOENT");
});

const inNamespace = ["--user", "--map-root-user", "--pid", "--fork"];
it.skipIf(spawnSync("unshare", [...inNamespace, "true"]).status !== 0)(
  "cannot see other processes in a container whose /proc is that of another namespace",
  () => {
    const owner = new URL("lock-owner.ts", import.meta.url).href;
    const program = `import(${JSON.stringify(owner)}).then(({ thisProcess }) => console.log(thisProcess.system))`;
    const node = [process.execPath, "--import", "tsx", "-C", "@periodic-eval/source", "-e", program];
    expect(execFileSync("unshare", [...inNamespace, ...node], { encoding: "utf8" })).toBe("null\n");
    expect(execFileSync(node[0]!, node.slice(1), { encoding: "utf8" })).toBe(`${thisProcess.system}\n`);
  },
);

it("replaces a lock of an earlier process with the same id as this one", async () => {
  await heldBy({ pid: process.pid });
  await (await takeLock(path, nodeFiles)).release();
});

it.runIf(process.platform === "linux")(
  "replaces a lock whose process id now belongs to a process that started later",
  async () => {
    await heldBy({ pid: process.ppid, process_start: "0" });
    await (await takeLock(path, nodeFiles)).release();
    expect(thisProcess.processStart).toMatch(/^\d+$/);
  },
);

describe("a lock of a process that cannot be seen from here", () => {
  const elsewhere = { host: "elsewhere", system: "another boot-1", pid: process.pid };

  it("is taken after 60 checks without a renewal, and the wait says how long and why", async () => {
    await heldBy(elsewhere);
    const [owner, waits] = [checkingOwner(), [] as string[]];
    const { release } = await takeLock(path, nodeFiles, { owner, onWait: (text) => waits.push(text) });
    expect(owner.checks).toBe(checksUntilLost);
    expect(waits).toEqual([
      `waiting up to 60 s for ${path}, a lock of process ${process.pid} on "elsewhere": it cannot be seen from here whether that process still runs, and a process that runs renews its lock`,
    ]);
    await release();
  });

  it("is refused once its holder renews it, also at the last check", async () => {
    await heldBy(elsewhere);
    const owner = checkingOwner(
      (check) => check === checksUntilLost && heldBy({ ...elsewhere, renewals: "1" }),
    );
    await expect(takeLock(path, nodeFiles, { owner, ...quiet })).rejects.toThrow(
      `a lock held by process ${process.pid} on "elsewhere"`,
    );
    expect(owner.checks).toBe(checksUntilLost);
  });

  it("is taken at once when its holder releases it during the wait", async () => {
    await heldBy(elsewhere);
    const owner = checkingOwner((check) => check === 3 && rm(path));
    await (await takeLock(path, nodeFiles, { owner, ...quiet })).release();
    expect(owner.checks).toBe(3);
  });

  it("is watched from the start when yet another process takes it during the wait", async () => {
    await heldBy(elsewhere);
    const owner = checkingOwner((check) => check === 10 && heldBy({ ...elsewhere, token: "u" }));
    await (await takeLock(path, nodeFiles, { owner, ...quiet })).release();
    expect(owner.checks).toBe(10 + checksUntilLost);
  });

  it("is judged without a clock: the time jumps by hours during the wait", async () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    try {
      await heldBy(elsewhere);
      const hour = 3_600_000;
      const jumps = [3 * hour, -hour];
      const owner = checkingOwner((check) => {
        const jump = jumps[check - 1] ?? 0;
        vi.setSystemTime(Date.now() + jump);
        if (jump > 0) vi.advanceTimersByTime(jump);
        return check === 30 && heldBy({ ...elsewhere, renewals: "1" });
      });
      await expect(takeLock(path, nodeFiles, { owner, ...quiet })).rejects.toThrow("a lock held by");
      expect(owner.checks).toBe(30);
    } finally {
      vi.useRealTimers();
    }
  });

  it("is given to exactly one of many that wait for it", async () => {
    for (let round = 0; round < 5; round++) {
      await heldBy(elsewhere);
      const outcomes = await Promise.allSettled(
        Array.from({ length: 8 }, () => takeLock(path, nodeFiles, { owner: checkingOwner(), ...quiet })),
      );
      const winners = outcomes.filter((outcome) => outcome.status === "fulfilled");
      expect(winners).toHaveLength(1);
      await winners[0]!.value.release();
      expect(await readdir(folder)).toEqual([]);
    }
  });

  it("is unknown to a reader at its first check, and goes on once the reader has seen a renewal", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      await heldBy({ ...elsewhere, token: "r" });
      const isAlive = async () => (await readWriter(path, nodeFiles))?.isAlive;
      expect(await isAlive()).toBeNull();
      await heldBy({ ...elsewhere, token: "r", renewals: "1" });
      expect(await isAlive()).toBe(true);
      vi.advanceTimersByTime(61_000);
      expect(await isAlive()).toBe(false);
      await heldBy({ ...elsewhere, token: "r", renewals: "2" });
      expect(await isAlive()).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });
});

it.each(["", "{", '{"pid": 1}'])(
  "waits before it replaces a lock file that names no holder (%j)",
  async (text) => {
    await writeFile(path, text);
    const owner = checkingOwner();
    await (await takeLock(path, nodeFiles, { owner, ...quiet })).release();
    expect(owner.checks).toBe(checksUntilLost);
  },
);

describe.runIf(process.platform === "linux")("a lock of a stopped process", () => {
  it("is taken after the wait, which ends early if that process is killed", async () => {
    const child = spawn(process.execPath, ["-e", "process.stdin.resume()"], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    await once(child, "spawn");
    child.kill("SIGSTOP");
    await vi.waitUntil(async () => / T /.test(await readFile(`/proc/${child.pid}/stat`, "utf8")));
    await heldBy({ pid: child.pid! });
    const waits: string[] = [];
    const stopped = checkingOwner();
    await (await takeLock(path, nodeFiles, { owner: stopped, onWait: (text) => waits.push(text) })).release();
    expect([stopped.checks, waits]).toEqual([
      checksUntilLost,
      [expect.stringContaining("that process is stopped")],
    ]);
    await heldBy({ pid: child.pid! });
    const ended = once(child, "exit");
    const killed = checkingOwner(async (check) => {
      if (check === 2) child.kill("SIGKILL");
      if (check === 2) await ended;
    });
    await (await takeLock(path, nodeFiles, { owner: killed, ...quiet })).release();
    expect(killed.checks).toBe(2);
  });
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
    await winners[0]!.value.release();
    expect(await readdir(folder)).toEqual([]);
  }
});

it("replaces the lock after a process died while it replaced a stale one", async () => {
  const pid = Number(execFileSync(process.execPath, ["-p", "process.pid"], { encoding: "utf8" }));
  await heldBy({ pid });
  const dying = faultyFiles(({ name, path: at }) => (name === "rename" && at === path ? "die" : "none"));
  await expect(takeLock(path, dying, { owner: { ...thisProcess, pid } })).rejects.toThrow("dead");
  expect(await readdir(folder)).toHaveLength(3); // the stale lock, the claim on it, and the draft of the new lock
  const { release } = await takeLock(path, nodeFiles);
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
      if (to !== path) release ??= (await takeLock(path, nodeFiles)).release;
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
  const { release } = await takeLock(path, fs);
  await expect(takeLock(path, fs)).rejects.toThrow("held by process");
  await release();
  await (await takeLock(path, fs)).release();
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
  const { release } = await takeLock(path, nodeFiles);
  const waiting = withLock(path, async () => 0, { fs: nodeFiles, waitSeconds: 0.05 });
  await expect(waiting).rejects.toThrow(`a lock held by process ${process.pid}`);
  await release();
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
