import type { Evidence, Guard } from "@periodic-eval/contracts";
import type { Connection } from "./connection.ts";
import type { ResultOf } from "./protocol.ts";

/** Details of the trainer's model that changed since `hello`. */
export type Details = NonNullable<ResultOf<"leave">["details"]>;

/**
 * Returns the trainer's guards. The first one that is entered asks the trainer to observe and protect its state, the last one that
 * is left asks for all evidence: two messages per measurement. A guard of which the trainer sends no evidence observed nothing.
 *
 * @param names Without names, the guard `weights` alone, so that the trainer is always asked to protect its state.
 * @param changed Receives the details of the model that the trainer changed.
 */
export function liveGuards(
  connection: Connection,
  names: readonly string[],
  changed: (details: Details) => void = () => undefined,
): Guard[] {
  const parts = names.length === 0 ? ["weights"] : names;
  let before: Readonly<Record<string, string | null>> = {};
  let evidence: readonly Evidence[] = [];
  return parts.map((part, at) => ({
    name: part,
    isElsewhere: true,
    async enter({ seed }) {
      if (at === 0) ({ before } = await connection.ask("enter", { seed }));
      const state = before[part] ?? null;
      return {
        before: state,
        async leave() {
          if (at === parts.length - 1) {
            evidence = [];
            const answer = await leave(connection);
            ({ evidence } = answer);
            if (answer.details !== undefined) changed(answer.details);
          }
          const finding = evidence.find((item) => item.part === part);
          const isUnknown = finding === undefined || (finding.intact === true && state === null);
          if (!isUnknown) return finding;
          const note = finding?.note ?? "the trainer sent no evidence";
          return { part, before: state, after: finding?.after ?? null, intact: null, note };
        },
      };
    },
  }));
}

/** Returns the trainer's evidence; none of a trainer that is gone, with the training that it would be about. */
async function leave(connection: Connection): Promise<ResultOf<"leave">> {
  try {
    return await connection.ask("leave", {});
  } catch (error) {
    if (connection.ended.aborted) return { evidence: [] };
    throw error;
  }
}
