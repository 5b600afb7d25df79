import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Probes } from '../shared/probes.ts';
import type { PromptUsage } from './prompt-cache.ts';
import type { WireBody } from './wire.ts';

export type JournalEntry = {
  /** The body as sent; it has this shape only if `refusal` is absent. */
  readonly body: WireBody;
  /** The headers, without the key. */
  readonly headers: IncomingHttpHeaders;
  /** The index of the accepted key that was used; -1: none of them. */
  readonly keyIndex: number;
  /** Milliseconds of a monotonic clock. */
  readonly arrivedAtMs: number;
  /** HTTP status of the answer; 0 until it has been decided. */
  status: number;
  /** Why the request was refused. */
  refusal?: string;
  /** Tokens of its prompt, once it has been accepted. */
  prompt?: PromptUsage;
};

export type Journal = {
  readonly entries: readonly JournalEntry[];
  add(request: IncomingMessage, body: unknown, keys: readonly string[]): JournalEntry;
  waitForRequest(
    which: number | ((entry: JournalEntry) => boolean),
    deadlineMs?: number,
  ): Promise<JournalEntry>;
};

/** `limit`: how many of the latest entries are kept. */
export function createJournal(limit = Number.POSITIVE_INFINITY): Journal {
  const entries: JournalEntry[] = [];
  const probes = new Probes(() => `${entries.length} requests came`);
  return {
    entries,
    add(request, body, keys) {
      const { authorization, 'x-api-key': apiKey, ...headers } = request.headers;
      const key = authorization?.replace(/^Bearer /, '') ?? String(apiKey ?? '');
      const entry: JournalEntry = {
        body: body as WireBody,
        headers,
        keyIndex: keys.indexOf(key),
        arrivedAtMs: performance.now(),
        status: 0,
      };
      entries.push(entry);
      if (entries.length > limit) entries.shift();
      probes.changed();
      return entry;
    },
    waitForRequest(which, deadlineMs) {
      const find = () => (typeof which === 'number' ? entries[which - 1] : entries.find(which));
      return probes.waitFor(find, deadlineMs);
    },
  };
}
