import { realpathSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
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
  // A run that has just changed is not kept.
  await delay(100);
  const idle = new AbortController().signal;
  let parts = Infinity;
  for (let at = 0; at < parts; at++) {
    const { forRequest } = servedFolder(root, null, undefined);
    const request = (signal: AbortSignal) => forRequest(signal, async () => undefined);
    const [run] = (await request(idle).find("")).runs;
    const gone = new AbortController();
    parts = 0;
    const aborted = request(gone.signal).make(async (folder) => {
      const read = folder.files.read;
      Object.assign(folder.files, {
        async read(path: string) {
          if (parts++ === at) gone.abort();
          return read(path);
        },
      });
      return folder.read(run!);
    });
    const isWhole = await aborted.then(
      () => true,
      () => false,
    );
    expect([at, isWhole]).toEqual([at, at >= parts]);
    const { content } = await request(idle).make((folder) => folder.read(run!));
    if (content?.kind !== "callbacks") throw new Error("not a measured run");
    expect([at, content.run.problems]).toEqual([at, []]);
    expect(content.run.phases.map(({ snapshots, training }) => [snapshots.length, training])).toEqual([
      [6, points],
      [6, points],
    ]);
  }
});
