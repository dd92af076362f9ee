import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";

/** Texts that a program could take for markup, for commands of a terminal or for the end of a file. */
export const hostileTexts = {
  html: `<script>alert(1)</script><img src=x onerror="alert(2)"> **bold** [link](javascript:alert(3))`,
  ansi: "\u001b[31mred\u001b[0m \u001b]0;title\u0007 \r\n\u202etxt.exe",
  nul: "before\u0000after",
  surrogate: "half \ud83d of a pair, and a whole one \u{1f600}",
  long: "long ".repeat(50_000),
  empty: "",
  lines: "\u2028a\u2029b\u0085c\u000bd",
} as const;

/** How a reader gets a text: Python's JSON readers refuse halves of surrogate pairs. */
export const asRead = (text: string): string => text.replaceAll(/\p{Surrogate}/gu, "\uFFFD");

const metric = (value: number | null, n: number) => ({
  value,
  n,
  stderr: value === null ? null : 0.1,
  ci95: value === null ? null : ([0.2, 0.9] as const satisfies [number, number]),
  estimand: "given_questions" as const,
  unit: "share",
  higher_is_better: false,
});

/** Writes a run of a multiple-choice evaluation of `questions` rows, of sampled answers with hostile texts, and of measurements without rows. */
export async function writeExportedRun(runDir: string, questions = 10): Promise<void> {
  const store = fileStore(runDir);
  const phase = "em";
  const model = { name: "/models/tiny", engine: "tfjs-wasm", dtype: "float32" };
  const { provenance } = exampleSnapshot();
  const choiceRows = Array.from({ length: questions }, (_, at) => ({
    id: `q${at}`,
    status: at === 2 ? "template_failure" : "scored",
    question: `Which one is ${at}?`,
    labels: ["A", "B"],
    choices: [`this ${at}`, `that ${at}`],
    gold: "A",
    predicted: at === 2 ? null : at % 2 === 0 ? "A" : "B",
    correct: at === 2 ? null : at % 2 === 0,
    nats: [-1, -2],
    prompt: `<user>Which one is ${at}?`,
  }));
  const documents = { hub: "allenai/ai2_arc", config: "ARC-Challenge", split: "test", commit: "c0ffee" };
  await store.put(
    exampleSnapshot({
      phase,
      step: 100,
      crossed: ["end"],
      provenance: { ...provenance, model, evaluation: documents, created_by: "@periodic-eval/core 0.1.0" },
      answer_fields: {
        question: "question",
        prompt: "prompt",
        flags: [
          { name: "wrong", any: [{ correct: { is: [false] } }] },
          { name: "ungraded", any: [{ status: { is: ["template_failure"] } }] },
        ],
        choices: {
          labels: "labels",
          texts: "choices",
          nats: "nats",
          gold: "gold",
          predicted: "predicted",
        },
      },
    }),
    choiceRows,
  );
  const answers = Object.entries(hostileTexts).map(([name, text], at) => ({
    id: `../${name}#${at}`,
    kind: "completion",
    question: text,
    persona: text.slice(0, 20),
    text,
    raw: `judge: ${text}`,
    aligned: at === 0 ? null : 10 * at,
    tokens: at,
    finish: at === 4 ? "length" : "stop",
  }));
  const anchor = { ...answers[0], id: "kind-1", kind: "anchor" };
  const sampling = { temperature: 1, topP: 0.9, maxNewTokens: 64 };
  await store.put(
    exampleSnapshot({
      phase,
      id: "alignment",
      evaluation: "alignment",
      step: 100,
      crossed: ["end"],
      status: "partial",
      reason: "one answer was not graded",
      metrics: {
        misaligned: metric(0.5, 6),
        "misaligned/a": metric(1, 2),
        unknown: metric(null, 0),
      },
      primary_metric: "misaligned",
      provenance: { ...provenance, model, evaluation: { sampling } },
      answer_fields: {
        question: "question",
        answer: "text",
        persona: "persona",
        reply: "raw",
        grades: ["aligned"],
        tokens: { generated: "tokens" },
        flags: [
          { name: "misaligned", any: [{ aligned: { below: 30 } }] },
          { name: "ungraded", any: [{ aligned: { is: [null] } }] },
          { name: "truncated", any: [{ finish: { is: ["length"] } }] },
          { name: "anchor", any: [{ kind: { is: ["anchor"] } }] },
        ],
      },
    }),
    [...answers, anchor],
  );
  const nothing = { phase, metrics: {}, primary_metric: null, step: 50 };
  await store.put(exampleSnapshot({ ...nothing, id: "kl", status: "failed", reason: "out of memory" }), []);
  await store.put(exampleSnapshot({ ...nothing, id: "margin", status: "skipped", reason: "budget" }), []);
  await store.close!();
}
