import { realpathSync } from "node:fs";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { writeSampleRun } from "../run/sample-run.test-data.ts";
import { servedFolder } from "./served-folder.ts";

it("keeps nothing of a run whose reading was aborted", async () => {
  const root = realpathSync(temporaryFolder());
  await writeSampleRun(join(root, "run"));
  const store = fileStore(join(root, "run"));
  const points = [{ step: 1, runStep: 1, metrics: { loss: 2 } }];
  for (const phase of ["coupling", "em"]) await store.recordTraining!({ phase, points, replace: false });
  await store.close!();
  const idle = new AbortController().signal;
  let parts = Infinity;
  for (let at = 0; at < parts; at++) {
    const { forRequest } = servedFolder(root, null, undefined);
    const [run] = (await forRequest(idle).find("")).runs;
    const gone = new AbortController();
    parts = 0;
    const folder = forRequest(gone.signal);
    const { read } = folder.files;
    Object.assign(folder.files, {
      async read(path: string) {
        if (parts++ === at) gone.abort();
        return read(path);
      },
    });
    const aborted = folder.make(() => folder.read(run!), "small");
    const isWhole = await aborted.then(
      () => true,
      () => false,
    );
    expect([at, isWhole]).toEqual([at, at >= parts]);
    const { content } = await forRequest(idle).read(run!);
    if (content?.kind !== "callbacks") throw new Error("not a measured run");
    expect([at, content.run.problems]).toEqual([at, []]);
    expect(content.run.phases.map(({ snapshots, training }) => [snapshots.length, training])).toEqual([
      [6, points],
      [6, points],
    ]);
  }
});

it("makes one large reply at a time, and small ones meanwhile", async () => {
  const { forRequest } = servedFolder(realpathSync(temporaryFolder()), null, undefined);
  const { make } = forRequest(new AbortController().signal);
  const log: string[] = [];
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const large = ["first", "second"].map(async (name) =>
    make(async () => {
      log.push(`${name} begins`);
      await finished;
      log.push(`${name} ends`);
    }, "large"),
  );
  await make(async () => void log.push("small"), "small");
  expect(log).toEqual(["first begins", "small"]);
  finish();
  await Promise.all(large);
  expect(log.slice(2)).toEqual(["first ends", "second begins", "second ends"]);
});

it("makes a page once for all clients, and again for those that stay when the first has disconnected", async () => {
  const root = realpathSync(temporaryFolder());
  await writeSampleRun(join(root, "run"));
  const { forRequest } = servedFolder(root, null, undefined);
  const leaving = new AbortController();
  const idle = new AbortController().signal;
  const [run] = (await forRequest(idle).find("")).runs;
  let made = 0;
  let begun = () => {};
  const hasBegun = new Promise<void>((resolve) => (begun = resolve));
  const gone = new Promise<void>((resolve) => leaving.signal.addEventListener("abort", () => resolve()));
  const pageFor = async (signal: AbortSignal) =>
    forRequest(signal).page(
      "run",
      [run!],
      async () => {
        made++;
        begun();
        if (signal === leaving.signal) await gone;
        signal.throwIfAborted();
        return { markup: String(made), policy: "" };
      },
      "small",
    );
  const first = pageFor(leaving.signal);
  await hasBegun;
  const others = [pageFor(idle), pageFor(idle)];
  leaving.abort(new Error("disconnected"));
  await expect(first).rejects.toThrow("disconnected");
  expect((await Promise.all(others)).map(({ markup }) => markup)).toEqual(["2", "2"]);
  expect((await pageFor(idle)).markup).toBe("2");
  await expect(
    forRequest(idle).page("other", [run!], async () => Promise.reject(new Error("damaged")), "small"),
  ).rejects.toThrow("damaged");
});
