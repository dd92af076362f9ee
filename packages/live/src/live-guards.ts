import type { Evidence, Guard } from "@periodic-eval/contracts";
import type { Connection } from "./connection.ts";

/**
 * Returns the trainer's guards. The first one that is entered asks the trainer to observe and protect its state, the last one that
 * is left asks for all evidence: two messages per measurement.
 */
export function liveGuards(connection: Connection, names: readonly string[]): Guard[] {
  let before: Readonly<Record<string, string | null>> = {};
  let evidence: readonly Evidence[] = [];
  return names.map((name, at) => ({
    name,
    async enter({ seed }) {
      if (at === 0) ({ before } = await connection.ask("enter", { seed }));
      return {
        before: before[name] ?? null,
        async leave() {
          if (at === names.length - 1) ({ evidence } = await connection.ask("leave", {}));
          const found = evidence.find(({ part }) => part === name);
          return found ?? { part: name, before: before[name] ?? null, after: null, intact: null };
        },
      };
    },
  }));
}
