import { join } from "node:path";
import { makeFolder, readIfPresent, writeFileAtomic } from "@periodic-eval/store";
import { fakeModel } from "@periodic-eval/testing";
import type { FeedbackEngine, TrainedState, UpdateRecord, UpdateReport } from "./types.ts";

/** Points at which a test may interrupt a run. */
export type Moment = "opened" | "sampled" | "updating" | "updated";

/**
 * Creates an engine whose weights are the list of its training data: answers, metrics and checkpoints depend only on this list.
 * Its checkpoint is one file, written atomically.
 */
export function fakeEngine(
  at: (moment: Moment, step: number) => void = () => {},
): FeedbackEngine & { readonly opened: string[] } {
  const opened: string[] = [];
  return {
    opened,
    describe: () => ({ engine: "fake" }),
    async open({ loraId, folder }) {
      opened.push(loraId);
      await makeFolder(folder);
      const path = join(folder, "checkpoint.json");
      let history: string[] = [];
      let last: (UpdateRecord & { readonly report: UpdateReport }) | null = null;
      const text = await readIfPresent(path);
      if (text !== null)
        ({ history, last } = JSON.parse(text) as {
          history: string[];
          last: TrainedState["last"] & object;
        });
      at("opened", history.length);
      const model = fakeModel({
        weights: () => history.join("|"),
        base: fakeModel(),
        // Each update raises the log p of answers that begin with "yes".
        reply: (prompt, { seed }) => `${seed.length + prompt.length} ${"word ".repeat(12)}`.trim(),
        logLikelihood: (_, continuation) =>
          -continuation.length + (continuation.startsWith("yes") ? history.length : 0),
      });
      return {
        evaluable: model,
        trained: { updates: history.length, last },
        async sample(requests) {
          at("sampled", history.length);
          return requests.map(({ prompt, seed }) => ({
            text: `${prompt} answered ${seed} after ${history.length}`,
            finish: "stop",
            trace: { ids: [1], nats: [-1] },
          }));
        },
        async update(batch, record) {
          at("updating", history.length);
          history.push(
            batch
              .map(({ answer, feedback, teacherTurn }) => `${answer.text}:${feedback}:${teacherTurn}`)
              .join(),
          );
          const report: UpdateReport = { metrics: { loss: 1 / history.length, kl_reg: null }, subSteps: 4 };
          last = { ...record, report };
          await writeFileAtomic(path, JSON.stringify({ history, last }));
          at("updated", history.length);
          return report;
        },
        dispose() {},
      };
    },
  };
}
