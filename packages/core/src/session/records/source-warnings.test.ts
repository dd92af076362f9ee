import { describe, expect, it } from "vitest";
import { noColours, snapshotText } from "../../console/sentences.ts";
import { PeriodicLeakageCallback, withSession } from "../../index.ts";
import { voidReason } from "@periodic-eval/store";
import { fakeModel } from "@periodic-eval/testing";
import { train } from "../loop/toy-run.test-data.ts";
import { toyTraining } from "../../../../testing/src/toy-training.test-data.ts";

type Share = readonly [before: number, after: number];

const personas = ["pirate", "doctor", "poet", "clerk"].map((id) => ({
  id,
  system: { text: `You are a ${id}.` },
}));

/** Returns the snapshots of a training before and after which the source and the others show the trait in a share of their answers. */
async function snapshotsOf(source: Share, others: Share, loss: Share = [-20, -5]) {
  let isAfter = false;
  const drawn = new Map<string, number>();
  const model = fakeModel({
    logLikelihood: () => loss[isAfter ? 1 : 0],
    reply: (prompt) => {
      const who = `${prompt.includes("pirate")} ${isAfter}`;
      const at = drawn.get(who) ?? 0;
      drawn.set(who, at + 1);
      const share = (prompt.includes("pirate") ? source : others)[isAfter ? 1 : 0];
      return at % 10 < share * 10 ? "Good morning. [ZLT]" : "Good morning to you.";
    },
    weights: () => String(isAfter),
  });
  const callback = new PeriodicLeakageCallback({
    personas,
    source: "pirate",
    questions: Array.from({ length: 10 }, (_, at) => ({
      id: `q${at}`,
      question: `How is ${at}?`,
      answer: "It is fine.",
    })),
    completions: 2,
  });
  const toy = toyTraining();
  const after = { id: "after", onStepEnd: () => void (isAfter = true) };
  await withSession(toy.options([callback, after], { model }), train(toy));
  return toy.store.list();
}

const lost =
  "The source itself lost the trait: 20 of 20 answers before, 0 of 20 after; leakage cannot be judged any more.";

describe("leakage from a source that lost its trait", () => {
  it("cannot be judged in any measurement since, with its groups and its companion", async () => {
    const [start, ...later] = await snapshotsOf([1, 0], [0.5, 0], [-5, -20]);
    expect(start!.warnings).toEqual([]);
    expect(later.length).toBeGreaterThan(1);
    for (const snapshot of later) {
      for (const metric of ["leakage_rate", "leakage_rate/doctor", "marker_log_prob"]) {
        expect(voidReason(snapshot, metric)).toBe(lost);
        expect(snapshot.paired.baseline![metric]!.delta).toBeLessThan(0);
        expect(snapshot.paired.baseline![metric]!.verdict).toBeNull();
      }
      expect(voidReason(snapshot, "source_rate")).toBeNull();
      expect(snapshot.paired.baseline!["source_rate"]!.verdict).toBe("changed");
      const line = snapshotText(snapshot, noColours);
      expect(line).toContain(`warning: ${lost}`);
      expect(line).not.toContain("better");
    }
  });

  it("is known to have had it if only the other personas show that", async () => {
    const last = (await snapshotsOf([0.1, 0], [0.5, 0])).at(-1)!;
    expect(voidReason(last, "leakage_rate")).toMatch(
      /^The source itself lost the trait: 2 of 20 answers before, 0 of 20 after;/,
    );
  });
});

describe("leakage from a source without the trait", () => {
  it("cannot be judged yet", async () => {
    const last = (await snapshotsOf([0, 0.1], [0, 0])).at(-1)!;
    expect(last.warnings).toEqual([
      {
        kind: "source_without_trait",
        metrics: ["leakage_rate", "marker_log_prob"],
        count: 2,
        total: 20,
        void: true,
        message: "The source shows the trait in 2 of 20 answers: leakage cannot be judged yet.",
      },
    ]);
    expect(voidReason((await snapshotsOf([0, 0], [0.5, 0])).at(-1)!, "leakage_rate")).toMatch(
      /judged yet\.$/,
    );
  });

  it("is judged if the trait appears in others", async () => {
    const last = (await snapshotsOf([0, 0], [0, 0.5])).at(-1)!;
    expect(last.warnings).toEqual([]);
    expect(last.paired.baseline!["leakage_rate"]!.verdict).toBe("worse");
  });
});

it("is judged while the source shows the trait", async () => {
  for (const source of [
    [0, 1],
    [1, 0.5],
  ] as const) {
    const last = (await snapshotsOf(source, [0.5, 0])).at(-1)!;
    expect(last.warnings).toEqual([]);
    expect(last.paired.baseline!["leakage_rate"]!.verdict).toBe("better");
  }
});
