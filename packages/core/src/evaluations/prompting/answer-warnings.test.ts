import { describe, expect, it } from "vitest";
import { measure } from "../../session/window/measure.ts";
import { fakeModel } from "@periodic-eval/testing";
import { leakageEvaluation, type LeakageOptions } from "../leakage/evaluation.ts";
import type { GradedLeakageRow } from "../leakage/metrics.ts";

const questions = ["1", "2", "3", "4"].map((id) => ({ id, question: `${id}?`, answer: "So." }));
const personas = [
  { id: "pirate", system: { text: "pirate" } },
  { id: "doctor", system: { text: "doctor" } },
];

interface Reply {
  readonly text: string;
  readonly cut?: boolean;
}

/** Measures leakage of a model whose n-th completion of 24 is `reply(n)`. */
async function measureLeakage(reply: (at: number) => Reply, options: LeakageOptions = {}) {
  const model = {
    ...fakeModel(),
    generate: (requests: readonly unknown[]) =>
      Promise.resolve(
        requests.map((_, at) => {
          const { text, cut = false } = reply(at);
          return { text, ids: null, tokenNats: null, finish: cut ? ("length" as const) : ("stop" as const) };
        }),
      ),
  };
  const { snapshot, rows } = await measure(leakageEvaluation({ questions, personas, ...options }), model);
  return { ...snapshot, rows: rows as readonly GradedLeakageRow[] };
}

const judged = ["leakage_rate", "source_rate", "source_contrast"];

describe("warnings of sampled answers", () => {
  it("are none for whole answers, with the trait or without", async () => {
    expect((await measureLeakage(() => ({ text: "Well, that is so." }))).warnings).toEqual([]);
    expect((await measureLeakage(() => ({ text: "Well, that is so. [ZLT]" }))).warnings).toEqual([]);
  });

  it("void leakage if most answers were cut before the marker could appear", async () => {
    const { warnings, metrics, rows } = await measureLeakage((at) =>
      at < 2
        ? { text: "So [ZLT]", cut: true }
        : at < 16
          ? { text: "Well, that", cut: true }
          : { text: "Well." },
    );
    expect(rows.slice(0, 17).map(({ hit }) => hit)).toEqual([
      true,
      true,
      ...Array<null>(14).fill(null),
      false,
    ]);
    // 2 hits of the 10 answers that are decided.
    expect(metrics["leakage_rate"]).toMatchObject({ value: 2 / 10, n: 10 });
    expect(warnings).toEqual([
      {
        kind: "truncated",
        metrics: judged,
        count: 14,
        total: 24,
        void: true,
        message: "14 of 24 answers are cut off too early to decide: leakage cannot be judged.",
      },
    ]);
  });

  it("stand beside a trait that does not need the end of an answer", async () => {
    const { warnings, metrics } = await measureLeakage(() => ({ text: "Well, that", cut: true }), {
      marker: { name: "long", hit: (text) => text.length > 99 },
    });
    expect(metrics["leakage_rate"]).toMatchObject({ value: 0, n: 24 });
    expect(warnings).toEqual([
      {
        kind: "truncated",
        metrics: judged,
        count: 24,
        total: 24,
        void: false,
        message: "24 of 24 answers were cut off by their limit: only their beginnings are measured.",
      },
    ]);
  });

  it.each([
    ["empty", "", "empty"],
    ["repetitions", "the ".repeat(20), "repeated"],
    ["incoherent", "isHamot't)invalid)aboveDotAC<!=ESACIC)EDIT", "incoherent"],
  ])("void leakage and its companions if most answers are %s", async (word, text, kind) => {
    const { warnings } = await measureLeakage((at) => ({ text: at < 13 ? text : "Well, that is so." }));
    const message = `13 of 24 answers are ${word}: leakage cannot be judged.`;
    expect(warnings).toEqual([{ kind, metrics: null, count: 13, total: 24, void: true, message }]);
    const half = await measureLeakage((at) => ({ text: at < 12 ? text : "Well, that is so." }));
    expect(half.warnings).toEqual([]);
  });

  it("count the faults of different kinds together", async () => {
    const { warnings } = await measureLeakage((at) =>
      at < 6 ? { text: "" } : at < 14 ? { text: "I ".repeat(30) } : { text: "Well, that is so." },
    );
    expect(warnings).toMatchObject([
      {
        kind: "repeated",
        count: 14,
        message: "14 of 24 answers are of no use (8 repetitions, 6 empty): leakage cannot be judged.",
      },
    ]);
  });
});
