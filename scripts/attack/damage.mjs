// Renames, exchanges, copies, deletes, edits and adds files of a finished run. Readers name every change of a snapshot, its rows
// or the index, and never throw; the next session repairs the run, and can measure again what was lost.
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileStore, nodeFiles, readRun } from "@periodic-eval/core/snapshots";
import { namedStream } from "@periodic-eval/core/random";
import { exampleSnapshot } from "@periodic-eval/core/testing";

const phases = ["coupling", "em"];
const ids = ["capability", "leakage"];
const steps = [0, 10, 20];
const rowsOf = (step) => [0, 1, 2].map((item) => ({ id: `q${item}`, answer: `answer at ${step}` }));
const keys = phases.flatMap((phase) => ids.flatMap((id) => steps.map((step) => ({ phase, id, step }))));
const snapshotOf = ({ phase, id, step }, created_at) =>
  exampleSnapshot({
    phase,
    id,
    step,
    run_step: step + 30 * phases.indexOf(phase),
    created_at,
    crossed: step === 0 ? ["start"] : ["10 %"],
  });

async function writeRun(folder, layout, created_at) {
  const store = fileStore(folder, { layout });
  for (const key of keys)
    await store.put(snapshotOf(key, created_at), key.step === 20 ? [] : rowsOf(key.step));
  await store.close();
}

/** Files without syncs, which would take most of a case's time. */
const unsynced = {
  ...nodeFiles,
  syncFolder: async () => undefined,
  open: async (path, mode) => ({ ...(await nodeFiles.open(path, mode)), sync: async () => undefined }),
};
const quiet = { onWarning: () => undefined, fs: unsynced };

export async function damage(folder) {
  const layouts = ["nested", "flat"];
  for (const layout of layouts) {
    await writeRun(join(folder, `whole-${layout}`), layout, "2026-01-01T00:00:00.000Z");
    await writeRun(join(folder, `other-${layout}`), layout, "2026-02-02T00:00:00.000Z");
  }
  const run = join(folder, "run");
  const root = join(run, "periodic_eval");
  const filesIn = (top) =>
    readdirSync(top, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => /\.jsonl?$/.test(path))
      .sort();

  return async (seed) => {
    const random = namedStream(seed);
    const pick = (list) => list[Math.floor(list.length * random())];
    const layout = pick(layouts);
    rmSync(run, { recursive: true, force: true });
    cpSync(join(folder, `whole-${layout}`), run, { recursive: true });
    const other = join(folder, `other-${layout}`, "periodic_eval");
    const file = () => pick(filesIn(root));
    const json = () => pick(filesIn(root).filter((path) => path.endsWith(".json")));
    const rowsBeside = (path) => path.replace(/\.json$/, ".samples.jsonl");
    const together = (from, to, act) => {
      act(from, to);
      if (existsSync(rowsBeside(from))) act(rowsBeside(from), rowsBeside(to));
    };
    const exchange = (one, two) => {
      if (one === two || !existsSync(one) || !existsSync(two)) return;
      renameSync(one, `${one}.kept`);
      renameSync(two, one);
      renameSync(`${one}.kept`, two);
    };
    const copy = (from, to) => void (from === to || cpSync(from, to));
    const acts = {
      "exchanges two snapshots": () => exchange(json(), json()),
      "exchanges two snapshots with their rows": () => together(json(), json(), exchange),
      "exchanges two files": () => exchange(file(), file()),
      "renames a file over another": () => renameSync(file(), file()),
      "renames a snapshot": () =>
        together(
          json(),
          join(root, pick(["em", "new", "."]), `${pick(ids)}_step_${pick([5, 10, 99])}.json`),
          (from, to) => {
            mkdirSync(dirname(to), { recursive: true });
            renameSync(from, to);
          },
        ),
      "copies a file over another": () => copy(file(), file()),
      "copies a snapshot beside itself": () => {
        const from = json();
        cpSync(from, from.replace(/\.json$/, `.${pick(["bak", "moved", "1"])}.json`));
      },
      "copies a file of another run": () => {
        const from = pick(filesIn(other));
        const to = pick([from.replace(other, root), file()]);
        mkdirSync(dirname(to), { recursive: true });
        cpSync(from, to);
      },
      "deletes a file": () => rmSync(file()),
      "truncates a file": () => {
        const path = file();
        truncateSync(path, Math.floor(readFileSync(path).length * random()));
      },
      "flips a bit": () => {
        const path = file();
        const bytes = readFileSync(path);
        if (bytes.length === 0) return;
        bytes[Math.floor(bytes.length * random())] ^= 1 << Math.floor(8 * random());
        writeFileSync(path, bytes);
      },
      "repeats a line": () => {
        const path = file();
        appendFileSync(path, readFileSync(path, "utf8").split("\n")[0] + pick(["", "\n"]));
      },
      "deletes a folder": () => rmSync(join(root, pick(phases)), { recursive: true, force: true }),
    };
    const done = [];
    for (let count = 1 + Math.floor(3 * random()); count > 0 && filesIn(root).length > 1; count -= 1) {
      const name = pick(Object.keys(acts));
      done.push(name);
      acts[name]();
    }
    const fail = (text) => {
      throw new Error(`${text} (${layout}: ${done.join(", ")})\n${filesIn(root).join("\n")}`);
    };
    const contentOf = (top) =>
      JSON.stringify(filesIn(top).map((path) => [path.slice(top.length), readFileSync(path, "latin1")]));
    const isSame = contentOf(root) === contentOf(join(folder, `whole-${layout}`, "periodic_eval"));
    const isFormatOnly = async () => {
      // White space in a snapshot, and an incomplete last line of the index, change nothing.
      const now = await readRun(run);
      const whole = await readRun(join(folder, `whole-${layout}`));
      return JSON.stringify(now.phases) === JSON.stringify(whole.phases);
    };
    const { problems } = await readRun(run);
    if (isSame && problems.length > 0) fail(`problems of an intact run: ${problems[0].message}`);
    // An empty folder is that of a run which has measured nothing yet.
    const isEmpty = filesIn(root).length === 0;
    if (!isSame && !isEmpty && problems.length === 0 && !(await isFormatOnly()))
      fail("a change without a problem");

    const store = fileStore(run, { ...quiet, layout });
    await store.open();
    const found = new Set((await store.list()).map(({ phase, id, step }) => `${phase}/${id}/${step}`));
    await store.close();
    const again = (await readRun(run)).problems.filter(({ kind }) => kind !== "missing" && kind !== "rows");
    // A snapshot is not renamed back to where rows of another one are.
    const areRowsMixed = problems.some(({ kind }) => kind === "rows" || kind === "unreadable");
    const isLeft = ({ kind }) =>
      !["duplicate", "implausible"].includes(kind) && !(kind === "misplaced" && areRowsMixed);
    if (again.some(isLeft)) fail(`after a repair: ${again.find(isLeft).file}: ${again.find(isLeft).message}`);
    const measuring = fileStore(run, { ...quiet, layout });
    for (const key of keys) {
      const { phase, id, step } = key;
      const isKept =
        found.has(`${phase}/${id}/${step}`) &&
        (await measuring.rows(key).then(
          () => true,
          () => false,
        ));
      if (!isKept) await measuring.put(snapshotOf(key, "2026-03-03T00:00:00.000Z"), rowsOf(step));
    }
    await measuring.close();
    const last = await readRun(run);
    const left = last.problems.filter(isLeft);
    if (left.length > 0) fail(`after measuring again: ${left[0].file}: ${left[0].message}`);
    const measured = last.phases.flatMap(({ snapshots }) => snapshots);
    for (const { phase, id, step } of keys)
      if (measured.filter((one) => one.phase === phase && one.id === id && one.step === step).length !== 1)
        fail(`${phase}/${id}/${step} is not there once`);
  };
}
