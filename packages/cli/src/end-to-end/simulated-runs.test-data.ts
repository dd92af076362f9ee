import { errorMessage } from "@periodic-eval/contracts/options";
import { isDeepStrictEqual } from "node:util";
import { PeriodicEvalError } from "@periodic-eval/core";
import { seededRandom, SimulatedDisk, type Planted } from "../../../testing/src/simulated-disk.test-data.ts";
import { seen, simulatedRoot } from "../../../testing/src/simulated-files.test-data.ts";
import { SimulatedProcess, Turns, type Fault } from "../../../testing/src/simulated-process.test-data.ts";
import { users, type Reports, type SimulatedUser } from "./simulated-users.test-data.ts";

const folder = `${simulatedRoot}/runs/one`;

/** A user's command without interruptions: where it starts, how many operations it has, and its outcome. */
interface Whole {
  readonly disk: SimulatedDisk;
  readonly operations: number;
  readonly outcome: unknown;
  /** The outcome after two processes with different names. */
  readonly outcomeOfTwo: unknown;
}

const wholes = new Map<SimulatedUser, Promise<Whole>>();

async function wholeOf(user: SimulatedUser): Promise<Whole> {
  const disk = new SimulatedDisk(simulatedRoot);
  disk.create(`${simulatedRoot}/runs`, true);
  await new SimulatedProcess(disk, "a").run(async () => user.prepare?.(folder));
  const after = disk.copy();
  const process = new SimulatedProcess(after, "a");
  const server = { points: [] };
  const reports = (name: string) => ({ process: name, does: () => {}, done: () => {}, server });
  await process.run(() => user.command(folder, reports("a")));
  const outcome = await outcomeOn(after, user, server);
  if (user.beside === "both succeed")
    await new SimulatedProcess(after, "b").run(() => user.command(folder, reports("b")));
  const outcomeOfTwo = await outcomeOn(after, user, server);
  return { disk: disk.copy(), operations: process.operations, outcome, outcomeOfTwo };
}

function outcomeOn(disk: SimulatedDisk, user: SimulatedUser, server: Reports["server"]): Promise<unknown> {
  seen.disk = disk;
  return user.outcome(folder, server);
}

const errnos = ["ENOSPC", "EIO", "EACCES", "EROFS", "EMFILE"];

/**
 * Runs a user's command on a simulated disk and interrupts it, all as the seed says: by a kill, a power cut, an error of the
 * disk, or a second process. Runs it again, perhaps interrupted again, until it ends, and compares the outcome with that of a run without
 * interruptions.
 *
 * @returns What is wrong; null if nothing is.
 */
export async function runSeed(
  seed: number,
  planted: Planted | null = null,
  some: readonly SimulatedUser[] = users,
): Promise<string | null> {
  const random = seededRandom(`simulated disk ${seed}`);
  const weighted = some.flatMap((entry) => Array.from({ length: entry.weight }, () => entry));
  const user = weighted[Math.floor(random() * weighted.length)]!;
  if (!wholes.has(user)) wholes.set(user, wholeOf(user));
  const whole = await wholes.get(user)!;
  const disk = whole.disk.copy(planted);
  const server = { points: [] };
  const finished = new Set<string>();
  const story: string[] = [];
  const wrong: string[] = [];
  let isOfTwo = false;

  const run = async (name: string, fault: Fault | null, turns: Turns | null) => {
    const process = new SimulatedProcess(disk, name, fault, turns);
    const reports: Reports = {
      process: name,
      does: (work) => void (finished.has(work) && wrong.push(`${work} was done again`)),
      done: (work) => void (process.isDead || finished.add(work)),
      server,
    };
    const error = await process
      .run(() => user.command(folder, reports))
      .then(
        () => null,
        (thrown: unknown) => thrown,
      );
    const isKilled = process.isDead;
    // Nothing that the command left running in this program may go on.
    process.isDead = true;
    if (process.failed !== null) story.push(`${name}: ${isKilled ? "killed at " : ""}${process.failed}`);
    return { name, error, isKilled, isFailed: process.failed !== null };
  };
  const isExpected = (error: unknown) => user.isLogger === true || PeriodicEvalError.is(error);
  const faultOf = (kind: Fault["kind"]): Fault => ({
    at: 1 + Math.floor(random() * whole.operations * 1.1),
    kind,
    share: random(),
  });
  const endProcess = (isCut: boolean) => {
    if (isCut) story.push("power cut");
    if (isCut) disk.cut(random);
    else disk.endProcess();
  };

  const interrupt = async (way: number): Promise<void> => {
    if (way < 0.5) {
      const { error, isKilled } = await run("a", faultOf("die"), null);
      if (!isKilled && error !== null) wrong.push(`throws without a fault: ${errorMessage(error)}`);
      endProcess(random() < 0.7);
    } else if (way < 0.75) {
      const errno = errnos[Math.floor(random() * errnos.length)]!;
      const { error, isFailed } = await run("a", faultOf({ errno, isLasting: random() < 0.5 }), null);
      if (error !== null && !(isFailed && isExpected(error)))
        wrong.push(`throws another error than one of the store: ${errorMessage(error)}`);
      endProcess(random() < 0.2);
    } else if (user.beside !== null) {
      isOfTwo = true;
      const turns = new Turns(random);
      const ends = [run("a", random() < 0.3 ? faultOf("die") : null, turns), run("b", null, turns)];
      await turns.run(ends);
      for (const { name, error, isKilled } of await Promise.all(ends)) {
        if (error === null || isKilled) continue;
        if (user.beside === "both succeed" || !PeriodicEvalError.is(error, "store"))
          wrong.push(`process ${name} throws ${errorMessage(error)}`);
      }
      endProcess(random() < 0.5);
    }
  };
  await interrupt(random());
  while (wrong.length === 0 && random() < 0.3) await interrupt(random() * 0.75);
  for (const name of isOfTwo && user.beside === "both succeed" ? ["a", "b"] : ["a"]) {
    const { error } = await run(name, null, null);
    if (error !== null) wrong.push(`does not resume: ${errorMessage(error)}`);
  }
  if (wrong.length === 0) {
    const expected = isOfTwo ? whole.outcomeOfTwo : whole.outcome;
    const outcome = await outcomeOn(disk, user, server).catch((error: unknown) => String(error));
    if (!isDeepStrictEqual(outcome, expected))
      wrong.push(`another outcome: ${differenceOf(outcome, expected)}`);
  }
  return wrong.length === 0 ? null : `seed ${seed}, ${user.name}: ${story.join("; ")}: ${wrong.join("; ")}`;
}

/** Describes the first difference between two values. */
function differenceOf(got: unknown, expected: unknown, path = ""): string {
  if (typeof got === "object" && typeof expected === "object" && got !== null && expected !== null) {
    for (const key of new Set([...Object.keys(got), ...Object.keys(expected)])) {
      const [a, b] = [got, expected].map((value) => (value as Record<string, unknown>)[key]);
      if (!isDeepStrictEqual(a, b)) return differenceOf(a, b, `${path}.${key}`);
    }
  }
  return `${path} is ${JSON.stringify(got)}, not ${JSON.stringify(expected)}`;
}
