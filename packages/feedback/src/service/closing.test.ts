import { once } from "node:events";
import { mkdtemp, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { useBackend } from "@periodic-eval/models";
import { afterAll, beforeAll, expect, it } from "vitest";
import { microWorldParts } from "../engine/micro-world.test-data.ts";
import { ask, microWorldService } from "./service-client.test-data.ts";
import { serveFeedback } from "./index.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

const root = temporaryFolder(afterAll);
const failures: Error[] = [];

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});
afterAll(async () => {
  expect(failures).toEqual([]);
});

const halfRequest = [
  "POST /v1/score HTTP/1.1",
  "Host: 127.0.0.1",
  "Content-Type: application/json",
  "Content-Length: 100",
  "",
  "{",
];

// Concurrent, because each waits a second for the last replies.
it.concurrent.each([
  ["sends nothing", ""],
  ["sends half its headers", halfRequest.slice(0, 2).join("\r\n")],
  ["sends half its body", halfRequest.join("\r\n")],
])("closes and unlocks its root despite an open connection that %s", async (_, sent) => {
  const own = await mkdtemp(join(root, "connection-"));
  const service = await serveFeedback(microWorldService(own, failures));
  const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
  await once(socket, "connect");
  const closed = once(socket, "close");
  socket.on("error", () => {}).resume();
  socket.write(sent);
  // This reply shows that the server has read the bytes above.
  expect((await ask(service.url, "/v1/health")).status).toBe(200);
  await service.close();
  await closed;
  await (await serveFeedback(microWorldService(own, failures))).close();
});

it("throws from close if the model's dispose throws, but unlocks its root", async () => {
  const service = await serveFeedback({
    ...microWorldService(root, failures),
    async openModel(adapter) {
      const opened = await microWorldParts.openModel(adapter);
      return {
        ...opened,
        dispose() {
          opened.dispose();
          throw new Error("the engine is gone");
        },
      };
    },
  });
  const { status } = await ask(service.url, "/v1/score", {
    model: "micro-world",
    prompt: "The sky",
    completion: " is",
  });
  expect(status).toBe(200);
  await expect(service.close()).rejects.toThrow("the engine is gone");
  await expect(ask(service.url, "/v1/health")).rejects.toThrow();
  await (await serveFeedback(microWorldService(root, failures))).close();
});

it("names a root that cannot be written to", async () => {
  const file = join(root, "file");
  await writeFile(file, "");
  await expect(serveFeedback(microWorldService(file, failures))).rejects.toThrow(
    `${file}: got EEXIST (a file`,
  );
});
