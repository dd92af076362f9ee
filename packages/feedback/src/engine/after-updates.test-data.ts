import type { FeedbackEngine } from "./types.ts";

/** Wraps an engine: calls `act` after each update, before `update` returns, with the number of updates so far (from 1). */
export function afterUpdates(
  engine: FeedbackEngine,
  act: (updates: number) => Promise<void> | void,
): FeedbackEngine {
  let updates = 0;
  return {
    ...engine,
    async open(request) {
      const model = await engine.open(request);
      return {
        ...model,
        async update(...args: Parameters<typeof model.update>) {
          const report = await model.update(...args);
          updates += 1;
          await act(updates);
          return report;
        },
      };
    },
  };
}
