import { expect, it } from "vitest";
import { buildPeriodicEval } from "@periodic-eval/core";
import { fileStore } from "@periodic-eval/store";
import { temporaryFolder } from "../../testing/src/temporary-folder.test-data.ts";
import { send, train, type Message } from "./scripted-client.test-data.ts";

it.each(["end", "close"])("shows what the trainer logs with %s in the training curves", async (method) => {
  const runDir = temporaryFolder();
  const logged = [
    { step: 3, metrics: { loss: 0.5 } },
    { step: 4, metrics: { loss: 0.25 } },
  ];
  const change = (message: Message) =>
    send(message["method"] === method ? { ...message, params: { logged } } : message);
  expect(await train({ runDir, change })).toBeNull();
  const points = await fileStore(runDir).training!("train");
  expect(points.slice(-2)).toMatchObject(logged);
});

it("ignores a notice that it does not know", async () => {
  const change = (message: Message) => send({ method: "applause", params: { loud: true } }) + send(message);
  expect(await train({ runDir: temporaryFolder(), change })).toBeNull();
});

it("answers a checkpoint that a callback wants at the end", async () => {
  const saves: unknown[] = [];
  const heard = ({ result }: Message) => void (result?.save && saves.push(result.save));
  const open = async ({ config, phase }: Message) => {
    const { callbacks, session } = await buildPeriodicEval(config, { phase });
    const saving = {
      id: "saving",
      onTrainEnd: (context: { requestSave(reason: string): void }) => context.requestSave("the end"),
    };
    return { ...session, callbacks: [...callbacks, saving], loggers: [] };
  };
  expect(await train({ runDir: temporaryFolder(), heard, host: { open } })).toBeNull();
  expect(saves).toEqual(["the end"]);
});
