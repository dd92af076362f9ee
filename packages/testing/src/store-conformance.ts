import {
  PeriodicEvalError,
  type Row,
  type Awaitable,
  type SnapshotKey,
  type SnapshotStore,
} from "@periodic-eval/contracts";
import { expectEqual, expectRejects, expectThat, type Check } from "./check.ts";
import { exampleSnapshot } from "./example-snapshot.ts";

/**
 * Returns the checks that every snapshot store must pass.
 *
 * @param makeStore Returns a new, empty store for each check.
 *
 *     for (const check of storeConformance(() => myStore())) it(check.name, check.run);
 */
export function storeConformance(makeStore: () => Awaitable<SnapshotStore>): readonly Check[] {
  const check = (name: string, run: (store: SnapshotStore) => Promise<void>): Check => ({
    name,
    async run() {
      const store = await makeStore();
      try {
        await run(store);
      } finally {
        await store.close?.();
      }
    },
  });
  return [...basicChecks(check), ...orderChecks(check), ...supersedeChecks(check), ...safetyChecks(check)];
}

type MakeCheck = (name: string, run: (store: SnapshotStore) => Promise<void>) => Check;

const rows: readonly (Row & { readonly text: string | null })[] = [
  { id: "q1", text: 'line\nbreak, "quotes", \u2028 and 日本' },
  { id: "q2", text: null },
];
const key = (changes: Partial<SnapshotKey> = {}): SnapshotKey => ({
  phase: "train",
  id: "capability",
  step: 0,
  ...changes,
});

const stepsIn = async (store: SnapshotStore) => (await store.list()).map(({ step }) => step);

function basicChecks(check: MakeCheck): readonly Check[] {
  return [
    check("is empty at first", async (store) => {
      expectEqual(await store.get(key()), null, "get");
      expectEqual(await store.rows(key()), [], "rows");
      expectEqual(await store.list(), [], "list");
    }),
    check("returns a stored snapshot, with unknown keys", async (store) => {
      const snapshot = exampleSnapshot({ accuracy: 0.5, nested: { deep: [1, null, "x"] } });
      await store.put(snapshot, rows);
      // A store may seal the snapshot with its `sha256`.
      const { samples, sha256: _sha256, ...stored } = (await store.get(key()))!;
      const { samples: _, ...expected } = snapshot;
      expectEqual(stored, expected, "snapshot");
      expectEqual(samples?.rows, rows.length, "samples.rows");
      expectEqual(await store.rows(key()), rows, "rows");
    }),
    check("sets samples to null without rows", async (store) => {
      await store.put(exampleSnapshot({ samples: { file: "elsewhere", rows: 3 } }), []);
      expectEqual((await store.get(key()))?.samples, null, "samples");
      expectEqual(await store.rows(key()), [], "rows");
    }),
    check("replaces a snapshot with the same key, and its rows", async (store) => {
      await store.put(exampleSnapshot({ status: "grading" }), rows);
      await store.put(exampleSnapshot({ status: "complete" }), rows.slice(1));
      expectEqual(
        (await store.list()).map(({ status }) => status),
        ["complete"],
        "list",
      );
      expectEqual(await store.rows(key()), rows.slice(1), "rows");
      await store.put(exampleSnapshot({ status: "failed" }), []);
      expectEqual(await store.rows(key()), [], "rows after a put without rows");
    }),
    check("is not affected by changes to snapshots that it took or returned", async (store) => {
      const snapshot = exampleSnapshot();
      await store.put(snapshot, rows);
      (snapshot as { status: string }).status = "failed";
      ((await store.get(key())) as { status: string }).status = "skipped";
      expectEqual((await store.get(key()))?.status, "complete", "status");
    }),
  ];
}

function orderChecks(check: MakeCheck): readonly Check[] {
  return [
    check("lists by phase in the order of the run, then step, then id", async (store) => {
      const at = (phase: string, step: number, id: string, before: number) =>
        store.put(exampleSnapshot({ phase, step, id, run_step: before + step }), []);
      await at("em", 10, "capability", 100);
      await at("coupling", 100, "capability", 0);
      await at("em", 0, "b", 100);
      await at("coupling", 20, "capability", 0);
      await at("em", 0, "a", 100);
      expectEqual(
        (await store.list()).map(({ phase, step, id }) => [phase, step, id]),
        [
          ["coupling", 20, "capability"],
          ["coupling", 100, "capability"],
          ["em", 0, "a"],
          ["em", 0, "b"],
          ["em", 10, "capability"],
        ],
        "order",
      );
    }),
    check("distinguishes names with dots, underscores and digits", async (store) => {
      const keys = [
        { phase: "train", id: "a", step: 1 },
        { phase: "train", id: "a_step_1", step: 1 },
        { phase: "train", id: "a_step_1.samples", step: 1 },
        { phase: "train", id: "a.json", step: 1 },
        { phase: "train.a_step_1", id: "a", step: 1 },
        { phase: "a_step_1", id: "a", step: 11 },
        { phase: "a_step_1.json", id: "a", step: 1 },
      ];
      for (const [at, named] of keys.entries())
        await store.put(exampleSnapshot({ ...named, run_step: at }), [{ id: String(at) }]);
      for (const [at, named] of keys.entries()) {
        expectEqual((await store.get(named))?.run_step, at, `get ${JSON.stringify(named)}`);
        expectEqual(await store.rows(named), [{ id: String(at) }], `rows ${JSON.stringify(named)}`);
      }
      expectEqual((await store.list()).length, keys.length, "list");
    }),
  ];
}

function supersedeChecks(check: MakeCheck): readonly Check[] {
  return [
    check("supersedes a snapshot, and accepts its key again", async (store) => {
      await store.put(exampleSnapshot(), rows);
      await store.put(exampleSnapshot({ step: 20 }), rows);
      await store.supersede(key(), "a test");
      expectEqual(await store.get(key()), null, "get");
      expectEqual(await store.rows(key()), [], "rows");
      expectEqual(await stepsIn(store), [20], "list");
      await store.put(exampleSnapshot({ status: "failed" }), []);
      await store.supersede(key(), "again");
      expectEqual(await stepsIn(store), [20], "list after superseding twice");
    }),
    check("does nothing when it supersedes a missing snapshot", async (store) => {
      await store.supersede(key({ step: 5 }), "a test");
      expectEqual(await store.list(), [], "list");
    }),
  ];
}

function safetyChecks(check: MakeCheck): readonly Check[] {
  return [
    check("rejects an invalid snapshot and keeps the old one", async (store) => {
      await store.put(exampleSnapshot(), rows);
      const bad = exampleSnapshot({ epoch: Number.NaN });
      const error = await expectRejects(() => store.put(bad, []), "a snapshot with NaN is rejected");
      expectThat(PeriodicEvalError.is(error), "the error is a PeriodicEvalError");
      expectEqual((await store.get(key()))?.epoch, 0, "epoch");
      expectEqual(await store.rows(key()), rows, "rows");
    }),
    check("rejects names that lead out of the run", async (store) => {
      await expectRejects(
        () => store.put(exampleSnapshot({ phase: "../x" }), []),
        "the phase ../x is rejected",
      );
      await expectRejects(() => store.put(exampleSnapshot({ id: "a/b" }), []), "the id a/b is rejected");
    }),
    check("accepts concurrent writes, as from background grading", async (store) => {
      const steps = Array.from({ length: 8 }, (_, step) => step);
      await Promise.all(steps.map((step) => store.put(exampleSnapshot({ step }), [{ id: String(step) }])));
      expectEqual(await stepsIn(store), steps, "steps");
    }),
    check("opens and closes repeatedly", async (store) => {
      await store.open?.();
      await store.open?.();
      await store.put(exampleSnapshot(), rows);
      await store.close?.();
      await store.close?.();
      expectEqual((await store.list()).length, 1, "snapshots after closing");
      await store.put(exampleSnapshot({ step: 1 }), rows);
      expectEqual((await store.list()).length, 2, "snapshots after writing again");
    }),
  ];
}
