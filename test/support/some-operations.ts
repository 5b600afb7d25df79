import type { HttpServerDeps } from '../../src/server/http-server.ts';
import { keyedWrite } from '../../src/steps.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';

/** What the operations of a test server work on: nothing that a test doesn't give. */
export function someOperations(
  over: Partial<HttpServerDeps['operations']> = {},
): HttpServerDeps['operations'] {
  const unused = () => Promise.reject(new Error('unused'));
  return {
    texts: textsFor('en'),
    policy: {
      ...{ timeZone: 'Europe/Berlin', namedOwners: [], identityLinks: new Map() },
      access: { owners: new Set(), allowFrom: new Set() },
    },
    people: ['test:me'],
    start: () => undefined,
    changed: () => undefined,
    redact: (text) => text,
    render: { trace: () => 'trace', record: () => 'record' },
    owner: { shown: async () => [], dismiss: unused, questions: async () => [], answer: unused },
    lanes: { changes: { current: () => 7, waitAfter: async () => undefined }, leaseMs: 30_000 },
    agents: {
      ...{
        send: unused,
        steer: unused,
        requestSummary: unused,
        wait: unused,
        cancel: unused,
        cancelRun: unused,
      },
      ...{ payloadsOf: unused, isBusy: unused, workOf: unused },
    },
    taskDoor: { send: unused },
    commands: () => [],
    roster: () => [],
    keyedWrite,
    hooks: { states: () => [] },
    ...over,
  };
}
