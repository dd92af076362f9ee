/** Clients that may follow runs at the same time. */
const mostClients = 200;
/** Messages that wait for a client which does not read; then it is dropped. */
const mostWaiting = 16;
/** Milliseconds between two checks of the files of a run, between two heartbeats, and until a client has to connect again. */
const [pollMs, heartbeatMs, lifetimeMs] = [2000, 15_000, 3_600_000];
/** The pause after a check, as a multiple of its duration: following takes at most a twentieth of a processor. */
const restFactor = 20;

interface Topic {
  version: string;
  /** With the timer that ends the stream of each. */
  readonly clients: Map<ReadableStreamDefaultController<Uint8Array>, ReturnType<typeof setTimeout>>;
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
export function liveUpdates(look: (folder: string) => Promise<string>, limits: Partial<LiveLimits> = {}) {
  const { clients: most, everyMs } = { clients: mostClients, everyMs: pollMs, ...limits };
  const topics = new Map<string, Topic>();
  let timer: ReturnType<typeof setTimeout> | null = null;
  let heartbeatAt = performance.now() + heartbeatMs;
  const count = () => [...topics.values()].reduce((sum, { clients }) => sum + clients.size, 0);

  function remove(folder: string, client: ReadableStreamDefaultController<Uint8Array>): void {
    const topic = topics.get(folder);
    // A timer keeps the client in memory.
    clearTimeout(topic?.clients.get(client));
    topic?.clients.delete(client);
    if (topic?.clients.size === 0) topics.delete(folder);
  }

  function send(folder: string, message: Uint8Array): void {
    for (const client of topics.get(folder)?.clients.keys() ?? []) {
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
      let own: ReadableStreamDefaultController<Uint8Array>;
      return new ReadableStream<Uint8Array>(
        {
          start(client) {
            own = client;
            const topic = topics.get(folder) ?? { version, clients: new Map() };
            topics.set(folder, topic);
            const end = () => {
              remove(folder, client);
              client.close();
            };
            topic.clients.set(client, setTimeout(end, lifetimeMs).unref());
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
