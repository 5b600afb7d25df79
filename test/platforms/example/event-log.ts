import type { ServerResponse } from 'node:http';

/** What happened, and the three ways in which a bot learns about it. */
export interface EventLog {
  add(event: object): void;
  /** Pull: waits for events; those before `after` count as acknowledged and are forgotten. */
  readAfter(after: number): Promise<object>;
  /** Push: sends what happens from now on, one event per line. Events that no client received aren't kept. */
  stream(response: ServerResponse): void;
  /** Hook: repeats each call until the answer is 2xx, one event after another. */
  callHook(hook: (event: string) => Promise<number>): void;
  /** Counts events that were neither acknowledged nor, for a hook, accepted. */
  pending(): number;
  redeliver(): void;
  /** Forgets what wasn't acknowledged, and reports the loss to the next client. */
  forget(): void;
  /** Ends the live streams. */
  interrupt(): void;
  close(): void;
}

type Entry = { readonly seq: number; readonly event: object };

export function eventLog(): EventLog {
  let entries: Entry[] = [];
  let seq = 0;
  let hasForgotten = false;
  let isClosed = false;
  let changed = Promise.withResolvers<void>();
  const streams = new Set<ServerResponse>();
  let latest: object = {};

  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const put = (event: object) => {
    seq += 1;
    entries.push({ seq, event });
    for (const stream of streams) stream.write(`${JSON.stringify(event)}\n`);
    wake();
  };
  return {
    add: (event) => {
      latest = event;
      put(event);
    },
    redeliver: () => put(latest),
    readAfter: async (after) => {
      entries = entries.filter((entry) => entry.seq > after);
      const mark = seq;
      if (entries.length === 0 && !hasForgotten && !isClosed)
        await Promise.race([changed.promise, pause(500)]);
      const isLossTold = hasForgotten;
      hasForgotten = false;
      const cursor = entries.at(-1)?.seq ?? Math.max(after, mark);
      return { events: entries.map(({ event }) => event), cursor, isLossTold };
    },
    stream: (response) => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
      if (hasForgotten) response.write('{"kind":"lost"}\n');
      hasForgotten = false;
      streams.add(response);
      response.on('close', () => streams.delete(response));
    },
    callHook: async (hook) => {
      while (!isClosed) {
        const [entry] = entries;
        if (entry === undefined) await Promise.race([changed.promise, pause(20)]);
        else if ((await hook(JSON.stringify(entry.event)).catch(() => 0)) === 200) entries.shift();
        else await pause(5);
      }
    },
    pending: () => entries.length,
    forget: () => {
      entries = [];
      hasForgotten = true;
      for (const stream of streams) stream.destroy();
      wake();
    },
    interrupt: () => {
      for (const stream of streams) stream.destroy();
      wake();
    },
    close: () => {
      isClosed = true;
      wake();
    },
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
