import { renderRecord } from '../cli/render-record.ts';
import { renderTrace } from '../cli/render-trace.ts';
import { stripText } from '../logging/redaction.ts';
import type { OwnerMessages } from '../server/message-routes.ts';
import type { Store } from '../store/base/command.ts';
import { dropPart, readUndelivered, retryPart } from '../store/delivery/operator-actions.ts';
import { readWhy } from '../store/reads/why/read-why.ts';

const mostParts = 200;

/** Provides the page's queries and actions on single messages, the same as `parley why` and `parley outbox`. */
export function ownerMessages({
  store,
  redact,
}: {
  readonly store: Store;
  redact(text: string): string;
}): OwnerMessages {
  return {
    why: async (id) => {
      const why = await store.read(readWhy, { id, withExcerpts: false });
      if (why.kind === 'account') return redact(stripText(renderTrace(why.account)));
      return why.kind === 'record' ? redact(stripText(renderRecord(why.record))) : undefined;
    },
    undelivered: () => store.read(readUndelivered, { limit: mostParts }),
    retry: (key) => store.write(retryPart, { key }),
    drop: (key) => store.write(dropPart, { key }),
  };
}
