import type { Mutant } from './mutants.ts';

/** Broken variants of waits whose length somebody else decides, and of what reports them. */
export const waitMutants: readonly Mutant[] = [
  {
    name: 'a lane that waits for a slot for too long is given up',
    invariant: 'a lane that finds no slot in its process is looked at by whoever has one',
    edit: { in: 'createLine', find: 'return tellAll(); if (stopping', replace: 'return; if (stopping' },
    test: { file: 'test/queue/lane-classes.test.ts', name: 'keeps a lane that finds no slot' },
  },
  {
    name: 'who has left the line is served',
    invariant: 'every slot is held by somebody who works, or free',
    edit: { in: 'createSlots', find: 'resolve(!waiting.delete(begin))', replace: 'resolve(false)' },
    test: { file: 'test/queue/slots.test.ts', name: 'waits no longer than it was told to' },
  },
  {
    name: 'a wait that a platform names is honoured as it is',
    invariant: 'a platform that says wait is asked again after five minutes',
    edit: {
      in: 'applyBackoff',
      find: 'afterMs: retryAfterMs(askedMs), askedMs',
      replace: 'afterMs: retryAfterMs(0) > 0 ? askedMs : 0, askedMs',
    },
    test: { file: 'test/outbox/deliverer.test.ts', name: 'waits as long as the platform says, five minutes' },
    isSample: true,
  },
  {
    name: 'what is asked for behind the last look is forgotten',
    invariant: 'what is put into a conversation at work is looked for',
    edit: {
      in: 'lookAhead',
      find: 'return await step();',
      replace: 'return await step().finally(() => asked.delete(conversationKey));',
    },
    test: {
      file: 'test/outbox/store-trouble.test.ts',
      name: 'looks again for what it is asked for after it has looked',
    },
  },
  {
    name: 'a boundary finds nothing of what a steering lane lets in',
    invariant: 'a boundary costs a commit where a message may join the run',
    edit: { in: 'atBoundary', find: "'in', steeringModes", replace: "'not in', steeringModes" },
    test: {
      file: 'test/store/items/enqueue.test.ts',
      name: 'costs a run a commit at its boundary only where it may join that run',
    },
  },
  {
    name: 'every disk is taken for one of this machine',
    invariant: 'a workspace on a network drive that is gone does not hold up the process',
    edit: { in: 'isOnOwnDisk', find: 'ownDisks.has(', replace: '!ownDisks.has(-' },
    test: {
      file: 'test/agent/bootstrap-files.test.ts',
      name: 'looks in a turn of a thread only where the disk is another machine’s, or may be',
    },
  },
  {
    name: 'a prompt stays as it was built',
    invariant: 'what the workspace says to the agent counts from its next run on',
    edit: { in: 'createAgents', find: 'known?.files === files', replace: 'known !== undefined' },
    test: { file: 'test/runs/agents.test.ts', name: 'a prompt is built once, and anew when' },
  },
  {
    name: 'a model that is back is kept to oneself',
    invariant: 'a call that succeeds wakes those that wait for the same provider',
    edit: {
      in: 'withRetry',
      find: 'current.stream(request, signal), waits.succeeded)',
      replace: 'current.stream(request, signal), () => undefined)',
    },
    test: { file: 'test/models/provider-waits.test.ts', name: 'are all woken by one that succeeds' },
    isSample: true,
  },
  {
    name: 'a channel that is down is no reason not to be ready',
    invariant: '/readyz names a channel that is down',
    edit: {
      in: 'channelComponent',
      find: "return [{ name, state: 'down', reason, since: timeText(since), ...next }];",
      replace: "return [{ name, state: 'ok', reason, since: timeText(since), ...next }];",
    },
    test: { file: 'test/server/health-server.test.ts', name: 'names a channel that is down' },
  },
];
