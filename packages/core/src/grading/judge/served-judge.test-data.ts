import type {
  Completion,
  EvaluableModel,
  GenerateRequest,
  ModelWith,
} from "../../../../contracts/src/model.ts";
import type { GradeRequest } from "@periodic-eval/contracts";

export const live = { signal: new AbortController().signal };
export const price = { inputPerMillion: 1, outputPerMillion: 10 };

type Reply = Partial<Completion> | Error | Promise<Partial<Completion> | Error>;

/** A served model that returns the scripted reply to a prompt, with its usage. */
export function served(script: (prompt: string, call: number) => Reply) {
  const sent: GenerateRequest[] = [];
  const model: EvaluableModel & ModelWith<"generate"> = {
    identity: { name: "judge-1", engine: "scripted", dtype: "unknown", weights: null, adapter: null },
    contextLength: null,
    async generate(requests) {
      return Promise.all(
        requests.map(async (request) => {
          sent.push(request);
          const reply = await script(promptOf(request), sent.length - 1);
          if (reply instanceof Error) throw reply;
          return {
            text: "",
            ids: null,
            tokenNats: null,
            finish: "stop" as const,
            model: "judge-1-2026",
            usage: { inputTokens: 100, outputTokens: 20 },
            ...reply,
          };
        }),
      );
    },
  };
  return { model, sent };
}

export const promptOf = ({ prompt }: GenerateRequest) =>
  "messages" in prompt ? prompt.messages[0]!.content : "";
export const json = (aligned: number, coherent = 90) => ({ text: JSON.stringify({ aligned, coherent }) });
export const answers = (count: number): GradeRequest[] =>
  Array.from({ length: count }, (_, at) => ({ question: "Why?", answer: `answer <${at}>` }));
/** The number of the answer that a prompt asks about. */
export const numberIn = (prompt: string) => Number(/answer <(\d+)>/.exec(prompt)![1]);
