import { cp, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bytesIn, copyEarlierFiles, earlierFiles } from "./files.test-data.ts";
import {
  resumeAbortedSession,
  resumeKilledSession,
  startAbortedSession,
  startKilledSession,
  supersededFiles,
} from "./sessions.test-data.ts";

/** Folders that hold the fixtures, and only their inputs. */
let [earlier, fresh] = ["", ""];

beforeAll(async () => {
  earlier = await copyEarlierFiles("http://127.0.0.1:9/");
  fresh = await realpath(await mkdtemp(join(tmpdir(), "earlier-files-")));
  await cp(join(earlierFiles, "inputs"), join(fresh, "inputs"), { recursive: true });
});
afterAll(() => Promise.all([earlier, fresh].map((folder) => rm(folder, { recursive: true }))));

/**
 * The bytes of a run's files by path, less what depends on the process that wrote them (its lock, and host and process number in
 * the names of event files), the version in `provenance.created_by`, and words for people: `note` and what the guard of
 * `Math.random` saw in receipts, and `why` something is superseded. The clock stands still while a session measures, so that all
 * times are the same. Leaves out where phases closed (`.phases`), training curves, hashes, the intervals of shares over questions
 * (the earlier commit computed them by another method), and the texts of multiple choice and the numbers of tokens in rows, which
 * the earlier commit did not write, as it wrote no empty list of warnings.
 */
async function filesOf(runDir: string): Promise<Readonly<Record<string, string>>> {
  const files = await bytesIn(runDir, /(?<!\/\.(lock|phases)|\/training\/[^/]+)$/);
  return Object.fromEntries(
    Object.entries(files).map(([file, bytes]) => [
      file.replace(/(tfevents\.\d+)\..*$/, "$1"),
      bytes
        .replaceAll(/,\s*"(sha256|chain)": ?"[0-9a-f]{64}"/g, "")
        .replaceAll(/(?<="status":"scored",)"question":"[^"]*",|"choices":\[[^\]]*\],|"tokens":null,/g, "")
        .replace(/\s*"warnings": \[\],/, "")
        .replace(/(?<="created_by": "@periodic-eval\/core )[^"]+/, "VERSION")
        .replaceAll(/(?<="(note|why)": ?)"[^"]*"/g, "WORDS")
        .replaceAll(
          /"ci95": (null|\[[^\]]*\])(?=,\s+"estimand": "over_questions",\s+"unit": "share")/g,
          "INTERVAL",
        )
        .replaceAll(/(?<="part": "math-random",\s+"before": )"[^"]*"(,\s+"after": )"[^"]*"/g, "WORDS$1WORDS"),
    ]),
  );
}

const sessions = [
  { name: "killed-session", start: startKilledSession, resume: resumeKilledSession, moved: supersededFiles },
  { name: "aborted-session", start: startAbortedSession, resume: resumeAbortedSession, moved: [] },
];

describe.each(sessions)("the files of $name", ({ name, start, resume, moved }) => {
  const interrupted = (root: string) => join(root, name, "interrupted");

  it("are reproduced byte for byte up to the interruption", async () => {
    await start(fresh);
    expect(await filesOf(interrupted(fresh))).toEqual(await filesOf(join(earlierFiles, name, "interrupted")));
    // The earlier commit did not record the snapshots that a checkpoint knows.
    const stateIn = async (root: string) =>
      (await readFile(join(root, name, "state.json"), "utf8")).replace(/,\s*"snapshots": \{[^}]*\}/, "");
    expect(await stateIn(fresh)).toBe(await stateIn(earlierFiles));
  });

  it("resume to the bytes that the earlier commit wrote, without rewriting complete files", async () => {
    const before = await filesOf(interrupted(earlier));
    const resumed = await filesOf(join(earlierFiles, name, "resumed"));
    await resume(earlier);
    const kept = Object.entries(before).filter(([file]) => !moved.includes(file));
    expect(await filesOf(interrupted(earlier))).toEqual({ ...Object.fromEntries(kept), ...resumed });
  });
});
