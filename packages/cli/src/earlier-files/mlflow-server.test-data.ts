import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

interface Metric {
  readonly key: string;
  readonly step: number;
}

/** An MLflow server on loopback, with the calls that the logger makes. */
export interface MlflowServer {
  readonly address: string;
  /** The metrics of `runs/log-batch`, in the order in which they came. */
  readonly received: readonly Metric[];
  /** The other calls, in the same order: `runs/create`. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

export async function mlflowServer(): Promise<MlflowServer> {
  const received: Metric[] = [];
  const asked: string[] = [];
  const run = { info: { run_id: "run-1" }, data: { tags: [] } };
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const path = /mlflow\/([^?]+)/.exec(request.url!)![1]!;
      if (path === "runs/log-batch") received.push(...(body["metrics"] as readonly Metric[]));
      else asked.push(path);
      const reply = path === "experiments/get-by-name" ? { experiment: { experiment_id: "1" } } : { run };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    received,
    asked,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return (text === "" ? {} : JSON.parse(text)) as Readonly<Record<string, unknown>>;
}
