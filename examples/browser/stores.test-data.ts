// Runs in Chromium: the checks of the snapshot store on files of the browser, and a worker that is ended in the middle of writing.
import { deleteBrowserFiles, openBrowserFiles } from "@periodic-eval/store/browser";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot, storeConformance } from "@periodic-eval/testing";

/** The name of each check and its error, null if it passed; and the snapshots that the stores held before and after a reload. */
export interface CheckedStores {
  readonly checks: readonly (readonly [name: string, error: string | null])[];
  readonly snapshots: readonly [before: number, after: number];
}

const name = "stores";
const onWarning = (message: string) => console.warn(message);

/** Checks the store in memory, or in IndexedDB. */
async function checkStores(isKept: boolean): Promise<CheckedStores> {
  const files = isKept ? await openBrowserFiles({ name }) : null;
  const folders: string[] = [];
  const checks: [string, string | null][] = [];
  const makeStore = () => {
    folders.push(`/stores/${folders.length}`);
    return fileStore(folders.at(-1)!, { onWarning });
  };
  for (const check of storeConformance(makeStore)) {
    const error = await check.run().then(
      () => null,
      (reason: unknown) => String(reason),
    );
    checks.push([check.name, error]);
  }
  const count = async () => {
    const lists = folders.map(async (folder) => (await fileStore(folder, { onWarning }).list()).length);
    return (await Promise.all(lists)).reduce((sum, length) => sum + length, 0);
  };
  const before = await count();
  await files?.close();
  const again = isKept ? await openBrowserFiles({ name }) : null;
  const after = await count();
  await again?.close();
  if (isKept) await deleteBrowserFiles({ name });
  return { checks, snapshots: [before, after] };
}

/** In the worker: writes snapshots of the steps from the first free one on, and posts the step of each that is written. */
async function writeForever(): Promise<void> {
  await openBrowserFiles({ name: "ended" });
  const store = fileStore("/run", { onWarning });
  await store.open!();
  for (let step = (await store.list()).length; ; step++) {
    await store.put(exampleSnapshot({ step, run_step: step }), [{ id: `q${"x".repeat(100_000)}` }]);
    postMessage(step);
  }
}

/** Ends a writing worker several times, each time a little later after a snapshot. Returns what a reader then finds. */
async function endWorkers(rounds: number): Promise<{
  readonly acknowledged: number;
  readonly steps: readonly number[];
  readonly problems: readonly unknown[];
}> {
  let acknowledged = 0;
  for (let round = 0; round < rounds; round++) {
    const worker = new Worker("stores.js?write", { type: "module" });
    await new Promise<void>((resolve) =>
      worker.addEventListener("message", ({ data }: MessageEvent<number>) => {
        acknowledged = Math.max(acknowledged, data + 1);
        if (data % 3 === 2) setTimeout(resolve, 3 * round);
      }),
    );
    worker.terminate();
  }
  const files = await openBrowserFiles({ name: "ended" });
  const store = fileStore("/run", { onWarning });
  await store.open!();
  const steps = (await store.list()).map(({ step }) => step);
  const problems = await store.problems!();
  await store.close!();
  await files.close();
  return { acknowledged, steps, problems };
}

if (location.search === "?write") void writeForever();
else Object.assign(globalThis, { checkStores, endWorkers });
