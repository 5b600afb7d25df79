/** Broken variants of the way into a lane from inside Parley. */
import type { Mutant } from './mutants.ts';

const file = 'test/store/items/enqueue.test.ts';
const titles = 'test/store/lanes/titles.test.ts';

export const entranceMutants: readonly Mutant[] = [
  {
    name: 'route that no description has',
    invariant: 'the description of the API leaves no route out',
    edit: { in: 'describeApi', find: 'config?.call === undefined', replace: 'false' },
    test: {
      file: 'test/server/api-document.test.ts',
      name: 'lets no route start that the description of the API says nothing of',
    },
  },
  {
    name: 'late cancel stops the next run',
    invariant: 'a cancel of a run that has ended stops nothing',
    edit: { in: 'cancelReserved', find: '!isAtWork || lane', replace: 'lane' },
    test: {
      file: 'test/service/agent-service.test.ts',
      name: 'cancels a run by its id: its message while it waits, then the run, and nothing once that has ended',
    },
  },
  {
    name: 'cancel of one run ends all that programs sent',
    invariant: 'a cancel by the id of a run takes nobody else’s message along',
    edit: { in: 'cancelReserved', find: 'senderId: runId', replace: "senderId: ''" },
    test: {
      file: 'test/store/items/enqueue.test.ts',
      name: 'is cancelled by the id of its run, and no other: waiting, or retained by the run that took it',
    },
  },
  {
    name: 'answer that says more than its description',
    invariant: 'each call answers as it is described',
    edit: { in: 'acceptedMessage', find: ', acceptedAt: z.int()', replace: '' },
    test: { file: 'test/e2e/api.test.ts', name: 'answers each call as it is described' },
  },
  {
    name: 'body of a stranger’s webhook call read',
    invariant: 'nothing of a body is read before its sender is known',
    edit: {
      in: 'mountWebhooks',
      find: 'headers }) !== false) return;',
      replace: 'headers }) !== null) return;',
    },
    test: {
      file: 'test/server/http-server.test.ts',
      name: 'reads no body of a webhook whose caller doesn’t know the secret',
    },
  },
  {
    name: 'a second row for a repeated source key',
    invariant: 'what is put in under one key is there once',
    edit: {
      in: 'placeItem',
      find: 'sourceKey: item.sourceKey ?? null,',
      replace: 'sourceKey: item.sourceKey && id,',
    },
    also: [
      { in: 'enqueueItem', find: 'if (known) return known;', replace: '' },
      {
        in: 'enqueueItem',
        find: 'if (!enqueued)',
        replace: `if (!enqueued) return { id: item.id, laneKey: lane.key,
    reservedRunId: item.reservedRunId, text: item.content.text, enqueuedAt: tx.now };
  if (!enqueued)`,
      },
    ],
    test: { file, name: 'is there once under its source key, whoever puts it in at once' },
  },
  {
    name: 'what is alone is steered in',
    invariant: 'an item that is alone joins no run',
    edit: { in: 'chooseSteers', find: "row.reach !== 'alone' &&", replace: '' },
    test: { file, name: 'takes what is alone by itself, whatever waits beside it' },
  },
  {
    name: 'a run that is only on record posts a part',
    invariant: 'a record run leaves no parts',
    edit: { in: 'partsOf', find: "if (run.target === 'record') return [];", replace: '' },
    test: {
      file,
      name: 'begins the run whose id it has reserved, which leaves its answer on record and no part',
    },
  },
  {
    name: 'a slow follower not told what it missed',
    invariant: 'a subscriber hears exactly how many events did not fit',
    edit: { in: 'Subscriber', find: 'if (this.#missed > 0 || ', replace: 'if (' },
    test: {
      file: 'test/service/broker.test.ts',
      name: 'keeps the order, and counts exactly what did not fit',
    },
  },
  {
    name: 'the time in the system prompt',
    invariant: 'system prompt and tools are the same bytes from call to call',
    edit: {
      in: 'situation',
      find: "section('Where you are', where)",
      replace: "section('Where you are', where + process.hrtime.bigint())",
    },
    test: { file: 'test/e2e/stable-prefix.test.ts', name: 'stays the same, byte for byte' },
  },
  {
    name: 'rehearsal that is kept',
    invariant: 'the message that a process plays to itself leaves nothing behind',
    edit: {
      in: 'rehearseMessage',
      find: "throw new ParleyError('internal', rehearsalOver)",
      replace: 'return undefined as never',
    },
    test: { file: 'test/store/intake/rehearse-message.test.ts', name: 'leaves nothing behind' },
  },
  {
    name: 'rehearsal that asks the model',
    invariant: 'a rehearsed call ends where its request would leave',
    edit: { in: 'rehearseCall', find: '{ clock, log, fetch }', replace: '{ clock, log }' },
    test: { file: 'test/runs/rehearse-turn.test.ts', name: 'asks no server' },
  },
  {
    name: 'title that alerts',
    invariant: 'nobody hears of a title that fails',
    edit: { in: 'reserveCall', find: "call.purpose !== 'title'", replace: 'true' },
    test: { file: titles, name: 'costs the session that it names' },
  },
  {
    name: 'title of every message',
    invariant: 'a session is named once, by its first message',
    edit: { in: 'take', find: 'input.titleModels && isFirst', replace: 'input.titleModels' },
    also: [{ in: 'enqueueTitle', find: 'sourceKey: key', replace: 'sourceKey: newRowId()' }],
    test: { file: titles, name: 'is asked for with the first message' },
  },
];
