import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Row, Snapshot } from "@periodic-eval/core";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { alignmentFields } from "../answers/declared-fields.test-data.ts";
import { hashSnapshot } from "../../../store/src/files/hash-files.ts";

/** Measurements of `snapshots`, and rows of the one measurement of `rows`: more than a page reads at first. */
export const [manySnapshots, manyRows] = [1200, 20_001];

/** File of the rows of `rows`, relative to the root. */
export const rowsFile = "rows/periodic_eval/em/alignment_step_9.samples.jsonl";

/**
 * Writes a run with many snapshots and a run with many rows. The snapshots are written without a store, which
 * would wait for the disk at each.
 */
export async function writeLargeRoot(
  root: string,
  change: (snapshot: Snapshot) => Snapshot = (snapshot) => snapshot,
  row: (at: number) => Row = (at) => ({ id: `q${at}`, question: `Q ${at}?`, text: `T ${at}` }),
): Promise<void> {
  const folder = join(root, "snapshots", "periodic_eval");
  await mkdir(join(folder, "em"), { recursive: true });
  const lines: string[] = [];
  for (let step = 1; step <= manySnapshots; step++) {
    const place = { phase: "em", id: "alignment", evaluation: "alignment", step, run_step: step };
    const snapshot = change(
      exampleSnapshot({
        answer_fields: alignmentFields,
        ...place,
        max_steps: manySnapshots,
        pct: (100 * step) / manySnapshots,
      }),
    );
    const file = `em/alignment_step_${step}.json`;
    await writeFile(join(folder, file), JSON.stringify({ ...snapshot, sha256: hashSnapshot(snapshot) }));
    lines.push(JSON.stringify({ ...place, file, created_at: snapshot.created_at }));
  }
  await writeFile(join(folder, "index.jsonl"), `${lines.join("\n")}\n`);
  const store = fileStore(join(root, "rows"));
  const rows = Array.from({ length: manyRows }, (_, at) => row(at));
  await store.put(
    exampleSnapshot({
      answer_fields: alignmentFields,
      id: "alignment",
      evaluation: "alignment",
      phase: "em",
      step: 9,
    }),
    rows,
  );
  await store.close!();
}
