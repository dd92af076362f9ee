// Compares requests with those of lm-evaluation-harness 0.4.13 on a few small documents.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message, Prompt } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { taskNamed, tasks } from "./registry.ts";

interface Golden {
  readonly task: string;
  readonly files: Readonly<Record<string, string>>;
  readonly shots: number;
  readonly limit: number;
  readonly chat?: boolean;
  readonly system?: string;
  readonly multiturn?: boolean;
  readonly requests: readonly {
    readonly context: string | readonly Message[];
    readonly continuations?: readonly string[];
  }[];
}

// goldens/requests.json: `rows` as files, each case a line of `python lm_eval_tasks.py - 1` (benchmarks/peers).
const { rows, cases } = JSON.parse(
  await readFile(new URL("goldens/requests.json", import.meta.url), "utf8"),
) as { readonly rows: Readonly<Record<string, readonly object[]>>; readonly cases: readonly Golden[] };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tasks-"));
  for (const [name, some] of Object.entries(rows))
    await writeFile(pathOf(name), some.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return () => rm(folder, { recursive: true });
});
const pathOf = (name: string) => join(folder, `${name}.jsonl`);

describe("requests", () => {
  it.each(cases.map((one) => [titleOf(one), one] as const))(
    "equal those of lm-evaluation-harness: %s",
    async (_, golden) => {
      const { task, files, shots, limit, chat, system, multiturn, requests } = golden;
      const [data, pool] = [
        files["test"] ?? files["validation"]!,
        files["train"] ?? files["dev"] ?? files["validation"]!,
      ];
      const evaluation = taskNamed(tasks, task, "task").open({
        data: pathOf(data),
        fewshotPool: pathOf(pool),
        shots,
        limit,
        ...(chat === true && {
          chat: {
            ...(system !== undefined && { system }),
            ...(multiturn !== undefined && { fewshotAsMultiturn: multiturn }),
          },
        }),
      });
      const items = (await evaluation.items(fakeModel() as never)) as readonly {
        readonly at: number;
        readonly prompt: Prompt;
        readonly continuations?: readonly string[];
      }[];
      const actual = items
        .toSorted((a, b) => a.at - b.at)
        .map(({ prompt, continuations }) => ({
          context: contextOf(prompt),
          ...(continuations !== undefined && { continuations }),
        }));
      expect(actual).toEqual(requests);
    },
  );
});

/** Returns the prompt as the harness passes it to a chat template, with the system prompt as the first message. */
function contextOf(prompt: Prompt): string | readonly Message[] {
  if ("text" in prompt) return prompt.text;
  if ("ids" in prompt) throw new Error("expected a prompt of text or messages, got ids");
  const { messages, system } = prompt;
  return typeof system === "object" ? [{ role: "system", content: system.text }, ...messages] : messages;
}

function titleOf({ task, shots, chat, system, multiturn }: Golden): string {
  if (chat !== true) return `${task}, ${shots}-shot`;
  const turns = multiturn === false ? "one turn" : "turns";
  return `${task}, ${shots}-shot, a chat of ${turns}, ${system === undefined ? "no" : "a"} system prompt`;
}
