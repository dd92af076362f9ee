// Lets random file operations of the snapshot store fail, with an error of the system or by the death of its process. Every call
// succeeds or throws a `store` error, and a new process finds whole snapshots and writes again.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { fileStore, readRun } from "@periodic-eval/store";
import { exampleSnapshot, faultyFiles } from "@periodic-eval/testing";

const codes = [
  "ENOSPC",
  "EIO",
  "EDQUOT",
  "EACCES",
  "EPERM",
  "EROFS",
  "EMFILE",
  "ENFILE",
  "EBUSY",
  "ESTALE",
  "ETIMEDOUT",
];
/** A process that has ended. */
const owner = {
  pid: 4_194_305,
  host: "here",
  processStart: null,
  system: "here",
  renewMilliseconds: null,
  nextCheck: async () => undefined,
  stateOf: () => "ended",
};
const heir = { ...owner, pid: 4_194_306 };

export function errnos(folder) {
  return async (seed) => {
    const random = namedStream(seed);
    const pick = (list) => list[Math.floor(list.length * random())];
    const runDir = join(folder, "run");
    rmSync(runDir, { recursive: true, force: true });
    const share = pick([0.005, 0.02, 0.1, 0.4]);
    const deaths = pick([0, 0.1]);
    const fs = faultyFiles(() =>
      random() >= share ? "none" : random() < deaths ? "die" : { errno: pick(codes) },
    );
    let isDead = false;
    /** Snapshots by step: the marks that a reader may find, null for no snapshot. */
    const allowed = new Map();
    const store = fileStore(runDir, {
      fs,
      owner,
      onWarning: () => undefined,
      layout: pick(["nested", "flat"]),
    });
    const call = async (work) => {
      try {
        await work();
        return true;
      } catch (error) {
        if (String(error).includes("the process is dead")) isDead = true;
        else if (!PeriodicEvalError.is(error, "store")) throw error;
        return false;
      }
    };
    for (let i = 0; i < 12 && !isDead; i += 1) {
      const step = Math.floor(4 * random());
      const key = { phase: "train", id: "capability", step };
      const before = allowed.get(step) ?? [null];
      if (random() < 0.8) {
        const rows = Array.from({ length: Math.floor(5 * random()) }, (_, at) => ({ id: `q${at}`, mark: i }));
        const isDone = await call(() => store.put(exampleSnapshot({ step, mark: i }), rows));
        allowed.set(step, isDone ? [i] : [...before, i]);
      } else {
        const isDone = await call(() => store.supersede(key, "a test"));
        allowed.set(step, isDone ? [null] : [...before, null]);
      }
    }
    await call(() => store.close());
    const next = fileStore(runDir, { owner: heir, onWarning: () => undefined });
    await next.open();
    for (const [step, marks] of allowed) {
      const key = { phase: "train", id: "capability", step };
      const found = await next.get(key);
      const mark = found?.mark ?? null;
      if (!marks.includes(mark))
        throw new Error(
          `step ${step} has mark ${JSON.stringify(mark)}, expected one of ${JSON.stringify(marks)}`,
        );
      const rows = await next.rows(key);
      const isWhole = found === null ? rows.length === 0 : rows.length === (found.samples?.rows ?? 0);
      const isSafe = marks.length > 1 || rows.every((row) => row.mark === mark);
      if (!isWhole && marks.length === 1)
        throw new Error(`step ${step} has ${rows.length} rows, expected ${found?.samples?.rows ?? 0}`);
      if (!isSafe)
        throw new Error(`step ${step} with mark ${JSON.stringify(mark)} has rows ${JSON.stringify(rows)}`);
    }
    await next.put(exampleSnapshot({ step: 9 }), [{ id: "q" }]);
    await next.close();
    const { problems } = await readRun(runDir);
    if (problems.length > 0) throw new Error(`problems: ${JSON.stringify(problems)}`);
  };
}
