import { spawn } from "node:child_process";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { fileStore } from "../snapshots/file-store.ts";
import { readRun } from "../snapshots/read-run.ts";

const source = ["--import", "tsx", "-C", "@periodic-eval/source"];
const child = fileURLToPath(new URL("lease-child.test-data.ts", import.meta.url));

let above: string;
let runDir: string;
beforeEach(() => {
  above = temporaryFolder();
  runDir = join(above, "run");
});

/** Starts a process that takes itself for the process 1 of a container, and opens the run's store in it. */
function startContainer(system: string, host = "box") {
  const started = spawn(
    process.execPath,
    [...source, child, runDir, JSON.stringify({ pid: 1, host, system })],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  onTestFinished(() => void started.kill("SIGKILL"));
  const lines = createInterface(started.stdout)[Symbol.asyncIterator]();
  const warnings: string[] = [];
  /** Returns the next line that is no warning. */
  async function answer(): Promise<string> {
    for (;;) {
      const { value, done } = await lines.next();
      if (done === true) throw new Error("the process has ended");
      if (!value.startsWith("warning: ")) return value;
      warnings.push(value.slice("warning: ".length));
    }
  }
  return {
    opened: answer(),
    warnings,
    kill: (signal: NodeJS.Signals) => started.kill(signal),
    say(line: string): Promise<string> {
      started.stdin.write(`${line}\n`);
      return answer();
    },
  };
}

const stepsOf = async () => (await fileStore(runDir).list()).map(({ step }) => step);

/** Returns the content of all files of the run but its lock. */
async function contentOf(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.includes(".lock"));
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort();
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path, await readFile(path, "utf8")])),
  );
}

it("refuses a run that another container with the same host name and process id writes", async () => {
  const first = startContainer("boot-1");
  expect(await first.opened).toBe("open");
  const second = startContainer("boot-2");
  expect(await second.opened).toContain(
    "got a lock held by process 1, expected a run folder that no other session",
  );
  expect(await first.say("1")).toBe("1");
  expect(await first.say("close")).toBe("close");
  expect(await startContainer("boot-2").opened).toBe("open");
});

it("resumes a run whose container was killed in one with another host name, and says why it waits", async () => {
  const first = startContainer("boot-1", "box-1");
  await first.opened;
  await first.say("1");
  first.kill("SIGKILL");
  const second = startContainer("boot-2", "box-2");
  expect(await second.opened).toBe("open");
  expect(second.warnings).toEqual([expect.stringMatching(/^waiting up to 60 s for .*process 1 on "box-1"/)]);
  expect(await second.say("2")).toBe("2");
  expect(await second.say("close")).toBe("close");
  expect(await stepsOf()).toEqual([1, 2]);
});

it("lets exactly one of two processes take over the lock of a killed container", async () => {
  const first = startContainer("boot-1");
  await first.opened;
  first.kill("SIGKILL");
  const takers = ["boot-2", "boot-3"].map((system) => startContainer(system));
  const opened = await Promise.all(takers.map((taker) => taker.opened));
  expect(opened.sort()).toEqual(["open", expect.stringContaining("open: ")]);
  expect(opened[1]).toContain("a lock held by process 1");
});

describe.runIf(process.platform === "linux")("a process that was stopped", () => {
  it("goes on if nobody took its lock", async () => {
    const first = startContainer("boot-1");
    await first.opened;
    first.kill("SIGSTOP");
    await setTimeout(300);
    first.kill("SIGCONT");
    expect(await first.say("1")).toBe("1");
    expect(await stepsOf()).toEqual([1]);
  });

  it.each([
    [
      "while the other process runs",
      false,
      'process 1 on "box", which took over because this process had not renewed its lock',
    ],
    [
      "after the other process has ended",
      true,
      "no lock of this process any more: another process took over",
    ],
  ])("writes nothing after another process took its lock, %s", async (_, hasEnded, got) => {
    const first = startContainer("boot-1");
    await first.opened;
    await first.say("1");
    first.kill("SIGSTOP");
    const second = startContainer("boot-2");
    expect(await second.opened).toBe("open");
    await second.say("2");
    if (hasEnded) await second.say("close");
    const before = await contentOf(runDir);
    first.kill("SIGCONT");
    await setTimeout(300); // renewals
    const refusal = await first.say("3");
    expect(refusal).toContain(`3: [periodic-eval] ${runDir}: got ${got}`);
    expect(refusal).toContain("This process writes nothing more.");
    expect(await first.say("close")).toBe("close");
    expect(await contentOf(runDir)).toEqual(before);
    if (!hasEnded) expect(await second.say("4")).toBe("4");
    if (!hasEnded) await second.say("close");
    expect(await stepsOf()).toEqual(hasEnded ? [1, 2] : [1, 2, 4]);
    expect((await readRun(runDir)).problems).toEqual([]);
  });
});

describe("a run whose folder goes away", () => {
  const gone = "got no such folder any more: it was renamed or deleted";

  it("is not written again under its old name after a rename", async () => {
    const first = startContainer("boot-1");
    await first.opened;
    await first.say("1");
    await rename(runDir, join(above, "renamed"));
    expect(await first.say("2")).toContain(`2: [periodic-eval] ${runDir}: ${gone}`);
    expect(await first.say("close")).toBe("close");
    expect(await readdir(above)).toEqual(["renamed"]);
  });

  it("is not created again after a deletion, nor mixed with a new run of that name", async () => {
    const first = startContainer("boot-1");
    await first.opened;
    // At once: during a deletion file by file, only the lock may be gone.
    await rename(runDir, `${runDir} to delete`);
    await rm(`${runDir} to delete`, { recursive: true });
    expect(await first.say("1")).toContain(`1: [periodic-eval] ${runDir}: ${gone}`);
    await mkdir(join(runDir, "periodic_eval"), { recursive: true });
    await writeFile(join(runDir, "new"), "");
    expect(await first.say("2")).toContain(gone);
    expect(await readdir(runDir, { recursive: true })).toEqual(["new", "periodic_eval"]);
  });
});
