/** Clients that may follow runs at the same time. */
const mostClients = 200;
/** Messages that wait for a client which does not read; then it is dropped. */
const mostWaiting = 16;
/** Milliseconds between two checks of the files of a run, and between two heartbeats. */
const [pollMs, heartbeatMs] = [2000, 15_000];
/** The pause after a check, as a multiple of its duration: following takes at most a twentieth of a processor. */
const restFactor = 20;

type Client = ReadableStreamDefaultController<Uint8Array>;

interface Topic {
  version: string;
  readonly clients: Set<Client>;
}

const encoder = new TextEncoder();
const [changed, heartbeat] = [encoder.encode("event: change\ndata: {}\n\n"), encoder.encode(": waiting\n\n")];
/** Browsers connect again after this many milliseconds. */
const hello = encoder.encode("retry: 5000\n\n");

/**
 * Tells clients when files change, with one look at the files for all clients of a folder. `fs.watch` is not used: network file
 * systems and containers do not report changes.
 *
 * @param look Returns a string that changes with the files of a folder.
 */
export function liveUpdates(
  look: (folder: string) => Promise<string>,
  { clients: most = mostClients, everyMs = pollMs }: Partial<LiveLimits> = {},
) {
  const topics = new Map<string, Topic>();
  let timer: ReturnType<typeof setTimeout> | null = null;
  let heartbeatAt = performance.now() + heartbeatMs;
  const count = () => [...topics.values()].reduce((sum, { clients }) => sum + clients.size, 0);

  function remove(folder: string, client: Client): void {
    const clients = topics.get(folder)?.clients;
    clients?.delete(client);
    if (clients?.size === 0) topics.delete(folder);
  }

  function send(folder: string, message: Uint8Array): void {
    for (const client of topics.get(folder)?.clients ?? []) {
      if ((client.desiredSize ?? 0) > 0) client.enqueue(message);
      else {
        remove(folder, client);
        client.error(new Error("the client does not read"));
      }
    }
  }

  async function lookAtAll(): Promise<void> {
    const began = performance.now();
    const isHeartbeat = performance.now() >= heartbeatAt;
    if (isHeartbeat) heartbeatAt = performance.now() + heartbeatMs;
    for (const [folder, topic] of topics) {
      // The folder is gone, or cannot be read. If it is readable later, its version changes again.
      const version = await look(folder).catch(() => "");
      const isChanged = version !== topic.version;
      topic.version = version;
      if (isChanged) send(folder, changed);
      else if (isHeartbeat) send(folder, heartbeat);
    }
    schedule(Math.max(everyMs, restFactor * (performance.now() - began)));
  }

  function schedule(ms: number): void {
    timer = topics.size === 0 ? null : setTimeout(() => void lookAtAll(), ms);
    timer?.unref();
  }

  return {
    get clients(): number {
      return count();
    },
    /**
     * Returns a stream of server-sent events of a folder; null if there are too many clients.
     *
     * @param isStale Whether the folder has changed since the client read it.
     */
    follow(folder: string, version: string, isStale: boolean): ReadableStream<Uint8Array> | null {
      if (count() >= most) return null;
      let own: Client;
      return new ReadableStream<Uint8Array>(
        {
          start(client) {
            own = client;
            const topic = topics.get(folder) ?? { version, clients: new Set() };
            topics.set(folder, topic);
            topic.clients.add(client);
            client.enqueue(hello);
            if (isStale) client.enqueue(changed);
            if (timer === null) schedule(everyMs);
          },
          cancel: () => remove(folder, own),
        },
        new CountQueuingStrategy({ highWaterMark: mostWaiting }),
      );
    },
  };
}

/** For tests: other limits than the default ones. */
export interface LiveLimits {
  readonly clients: number;
  readonly everyMs: number;
}
