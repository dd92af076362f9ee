// Truncates, damages and deletes files of a finished run. Readers name each damaged snapshot and its damaged rows, and never throw;
// the next session repairs the run, and can measure again what was lost.
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
import { fileStore, nodeFiles, readRun } from "@periodic-eval/store";
import { namedStream } from "@periodic-eval/core/random";
import { exampleSnapshot } from "@periodic-eval/testing";

const phases = ["coupling", "em"];
const ids = ["capability", "leakage"];
const steps = [0, 10, 20];
const layouts = ["nested", "flat"];
const rowsOf = (step) => [0, 1, 2].map((item) => ({ id: `q${item}`, answer: `answer at ${step}` }));
const keys = phases.flatMap((phase) => ids.flatMap((id) => steps.map((step) => ({ phase, id, step }))));
const snapshotOf = ({ phase, id, step }) =>
  exampleSnapshot({ phase, id, step, run_step: step + 30 * phases.indexOf(phase) });

/** Files without syncs, which would take most of a case's time. */
const unsynced = {
  ...nodeFiles,
  syncFolder: async () => undefined,
  open: async (path, mode) => ({ ...(await nodeFiles.open(path, mode)), sync: async () => undefined }),
};

async function measure(folder, layout, missing = keys) {
  const store = fileStore(folder, { layout, onWarning: () => undefined, fs: unsynced });
  await store.open();
  for (const key of missing) await store.put(snapshotOf(key), key.step === 20 ? [] : rowsOf(key.step));
  await store.close();
}

export async function damage(folder) {
  for (const layout of layouts) await measure(join(folder, `whole-${layout}`), layout);
  const run = join(folder, "run");
  const root = join(run, "periodic_eval");
  const files = () =>
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /_step_.*\.jsonl?$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
  const acts = {
    deletes: (path) => rmSync(path),
    truncates: (path, share) => truncateSync(path, Math.floor(readFileSync(path).length * share)),
    "flips a bit of": (path, share) => {
      const bytes = readFileSync(path);
      if (bytes.length > 0) bytes[Math.floor(bytes.length * share)] ^= 4;
      writeFileSync(path, bytes);
    },
    "repeats a line of": (path) => appendFileSync(path, readFileSync(path, "utf8").split("\n")[0]),
  };

  return async (seed) => {
    const random = namedStream(seed);
    const pick = (list) => list[Math.floor(list.length * random())];
    const layout = pick(layouts);
    rmSync(run, { recursive: true, force: true });
    const whole = join(folder, `whole-${layout}`);
    cpSync(whole, run, { recursive: true });
    const done = [];
    for (let count = 1 + Math.floor(3 * random()); count > 0; count -= 1) {
      const [name, path] = [pick(Object.keys(acts)), pick(files())];
      done.push(`${name} ${path}`);
      acts[name](path, random());
    }
    const check = (isRight, text) => {
      if (!isRight) throw new Error(`${text} (${layout}: ${done.join(", ")})`);
    };
    const standing = (record) => record.phases.flatMap(({ snapshots }) => snapshots);
    const textOf = ({ phase, id, step }) => `${phase}/${id}/${step}`;
    const expected = new Map(standing(await readRun(whole)).map((one) => [textOf(one), JSON.stringify(one)]));
    const damaged = await readRun(run);
    for (const one of standing(damaged))
      check(JSON.stringify(one) === expected.get(textOf(one)), `${textOf(one)} has other values`);

    await measure(run, layout, []);
    const repaired = await readRun(run);
    const bad = repaired.problems.filter(({ kind }) => kind === "rows").map(({ key }) => textOf(key));
    check(
      repaired.problems.every(({ kind }) => kind === "rows"),
      `after a repair: ${repaired.problems[0]?.message}`,
    );
    const sound = new Set(standing(repaired).map(textOf));
    await measure(
      run,
      layout,
      keys.filter((key) => !sound.has(textOf(key)) || bad.includes(textOf(key))),
    );
    const last = await readRun(run);
    check(last.problems.length === 0, `after measuring again: ${last.problems[0]?.message}`);
    check(standing(last).length === keys.length, `${standing(last).length} snapshots at last`);
  };
}
