import { connect } from "node:net";

export interface RawReply {
  /** 0 if the connection ended without a reply. */
  readonly status: number;
  /** With names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  readonly whole: string;
}

/** Sends a request without normalizing it, and reads the reply until the server closes the connection. */
export function sendRaw(port: number, text: string): Promise<RawReply> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, "127.0.0.1", () => socket.write(Buffer.from(text, "latin1")));
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", reject);
    socket.on("close", () => {
      const whole = Buffer.concat(chunks).toString("utf8");
      const [head = "", ...rest] = whole.split("\r\n\r\n");
      const [line = "", ...fields] = head.split("\r\n");
      const headers = new Map(
        fields.map((field): [string, string] => {
          const at = field.indexOf(":");
          return [field.slice(0, at).toLowerCase(), field.slice(at + 1).trim()];
        }),
      );
      resolve({ status: Number(line.split(" ")[1] ?? 0), headers, body: rest.join("\r\n\r\n"), whole });
    });
  });
}

/** Returns a complete request for a target, without encoding it. */
export const getRaw = (port: number, target: string, more: readonly string[] = []): Promise<RawReply> =>
  sendRaw(
    port,
    [`GET ${target} HTTP/1.1`, `Host: 127.0.0.1:${port}`, "Connection: close", ...more, "", ""].join("\r\n"),
  );
