import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import type * as files from "node:fs/promises";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.ts";
import { checkpointsOf } from "./checkpoints.ts";
import { stateOf } from "./trainer-state.test-data.ts";

/** Kills the process in the middle of the operation after `left` more disk changes; later operations do nothing. */
const life = vi.hoisted(() => ({ left: Infinity }));

vi.mock("node:fs/promises", async (importOriginal) => {
  const real = await importOriginal<typeof files>();
  const killed = () => Promise.reject(new Error("killed"));
  const alive =
    <A extends unknown[], R>(operation: (...args: A) => Promise<R>) =>
    (...args: A) =>
      life.left < 0 ? killed() : operation(...args);
  const dying =
    <A extends unknown[], R>(operation: (...args: A) => Promise<R>, half: (...args: A) => Promise<unknown>) =>
    async (...args: A) => {
      life.left -= 1;
      if (life.left >= 0) return operation(...args);
      if (life.left === -1) await half(...args);
      return killed();
    };
  const nothing = async () => {};
  return {
    ...real,
    rename: dying(real.rename, nothing),
    mkdir: dying(real.mkdir as (path: string) => Promise<unknown>, nothing),
    writeFile: dying(real.writeFile as (path: string, text: string) => Promise<void>, (path, text) =>
      real.writeFile(path, text.slice(0, text.length / 2)),
    ),
    // One file of the folder is gone.
    rm: dying(real.rm, async (path) => {
      const [first] = await real.readdir(path as string).catch(() => []);
      if (first !== undefined) await real.rm(join(path as string, first), { recursive: true });
    }),
    readdir: alive(real.readdir as (path: string) => Promise<string[]>),
    readFile: alive(real.readFile as (path: string) => Promise<string>),
    stat: alive(real.stat as (path: string) => Promise<unknown>),
    open: alive(real.open),
  };
});

it.each([
  ["the same step again", [1, 2, 2, 2], null],
  ["a new best, which is kept", [1, 1, 2, 3], 1],
] as const)(
  "leaves the last checkpoint or the new one complete after a kill at any point of writing: %s",
  { timeout: 60_000 },
  async (_, steps, best) => {
    let points = 0;
    for (let isOver = false; !isOver; points += 1) {
      const runDir = await temporaryFolder();
      const warnings: string[] = [];
      const open = () =>
        checkpointsOf({
          runDir,
          phase: "train",
          keep: 1,
          warn: (_where, message) => void warnings.push(message),
        });
      const save = (number: number) =>
        open().save(stateOf(steps[number] ?? 4, number, best), async (folder) => {
          await mkdir(join(folder, "inner"));
          await writeFile(join(folder, "inner/weights"), `of save ${number}`);
        });
      let done = 0;
      life.left = points;
      try {
        while (done < steps.length) {
          await save(done);
          done += 1;
        }
        isOver = life.left >= 0;
      } catch (error) {
        if (life.left >= 0) throw error;
      }
      life.left = Infinity;
      const place = `killed at operation ${points}, in save ${done}`;
      const found = await open().newest();
      // Before the first save completes there may be none.
      expect([done === 0 ? null : done - 1, done], place).toContain(found?.state.loss ?? null);
      expect(warnings, place).toEqual([]);
      // The next save works, and removes the leftovers of the kill.
      await save(steps.length);
      expect((await open().newest())!.state.loss, place).toBe(steps.length);
      const kept = [...(best !== null && found !== null ? [`step_${best}`] : []), "step_4"];
      expect((await readdir(join(runDir, "checkpoints/train"))).sort(), place).toEqual(kept);
      await rm(runDir, { recursive: true });
    }
    expect(points).toBeGreaterThan(4 * 8);
  },
);
