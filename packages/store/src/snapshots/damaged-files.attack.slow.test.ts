// Truncates, changes and deletes files of a finished run. Readers leave out what is damaged, and the next session repairs the run and
// can measure again what was lost.
import {
  appendFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { RunRecord } from "@periodic-eval/contracts";
import { exampleSnapshot } from "@periodic-eval/testing";
import fc from "fast-check";
import { expect, it } from "vitest";
import { attack, attackTimeout } from "../../../testing/src/attack.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { fileStore, nodeFiles, readRun } from "../index.ts";

type Key = { readonly phase: string; readonly id: string; readonly step: number };
const phases = ["coupling", "em"];
const keys: readonly Key[] = phases.flatMap((phase) =>
  ["capability", "leakage"].flatMap((id) => [0, 10, 20].map((step) => ({ phase, id, step }))),
);
const textOf = ({ phase, id, step }: Key) => `${phase}/${id}/${step}`;
const rowsOf = (step: number) => [0, 1, 2].map((item) => ({ id: `q${item}`, answer: `answer at ${step}` }));

/** Files without syncs, which would take most of a case's time. */
const unsynced: typeof nodeFiles = {
  ...nodeFiles,
  syncFolder: async () => undefined,
  open: async (path, mode) => ({ ...(await nodeFiles.open(path, mode)), sync: async () => undefined }),
};

/** Opens a run, which repairs it, and writes snapshots. */
async function measure(folder: string, layout: "nested" | "flat", missing: readonly Key[]) {
  const store = fileStore(folder, { layout, onWarning: () => undefined, fs: unsynced });
  await store.open!();
  for (const key of missing) {
    const snapshot = exampleSnapshot({ ...key, run_step: key.step + 30 * phases.indexOf(key.phase) });
    await store.put(snapshot, key.step === 20 ? [] : rowsOf(key.step));
  }
  await store.close!();
}

const acts = {
  deletes: (path: string) => rmSync(path),
  truncates: (path: string, share: number) =>
    truncateSync(path, Math.floor(readFileSync(path).length * share)),
  "flips a bit of": (path: string, share: number) => {
    const bytes = readFileSync(path);
    if (bytes.length > 0) bytes[Math.floor(bytes.length * share)]! ^= 4;
    writeFileSync(path, bytes);
  },
  "repeats a line of": (path: string) => appendFileSync(path, readFileSync(path, "utf8").split("\n")[0]!),
};
const damage = fc.record({
  act: fc.constantFrom(...(Object.keys(acts) as (keyof typeof acts)[])),
  file: fc.noBias(fc.nat({ max: 1000 })),
  share: fc.noBias(fc.nat({ max: 999 })).map((permille) => permille / 1000),
});
const cases = fc.record({
  layout: fc.constantFrom("nested" as const, "flat" as const),
  damages: fc.array(damage, { minLength: 1, maxLength: 3 }),
});

it("reads no other value from a damaged run, and repairs it", { timeout: attackTimeout }, async () => {
  const folder = temporaryFolder();
  const [whole, run] = [(layout: string) => join(folder, layout), join(folder, "run")];
  for (const layout of ["nested", "flat"] as const) await measure(whole(layout), layout, keys);
  const standing = (record: RunRecord) => record.phases.flatMap(({ snapshots }) => snapshots);

  await attack(40, cases, async ({ layout, damages }) => {
    rmSync(run, { recursive: true, force: true });
    cpSync(whole(layout), run, { recursive: true });
    for (const { act, file, share } of damages) {
      const files = readdirSync(run, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /_step_.*\.jsonl?$/.test(entry.name))
        .map((entry) => join(entry.parentPath, entry.name))
        .sort();
      acts[act](files[file % files.length]!, share);
    }
    const expected = new Map(standing(await readRun(whole(layout))).map((one) => [textOf(one), one]));
    for (const snapshot of standing(await readRun(run)))
      expect(snapshot).toEqual(expected.get(textOf(snapshot)));

    await measure(run, layout, []);
    const repaired = await readRun(run);
    expect(repaired.problems.filter(({ kind }) => kind !== "rows")).toEqual([]);
    const damaged = repaired.problems.map(({ key }) => textOf(key!));
    const sound = new Set(standing(repaired).map(textOf));
    const lost = keys.filter((key) => !sound.has(textOf(key)) || damaged.includes(textOf(key)));
    await measure(run, layout, lost);
    const last = await readRun(run);
    expect(last.problems).toEqual([]);
    expect(standing(last)).toHaveLength(keys.length);
  });
});
