import type { FeedbackEngine } from "./types.ts";

/** An engine that does something after each update, before its caller hears of it; told how many there were, from 1. */
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
