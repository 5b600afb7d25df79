import type { Mutant } from './mutants.ts';

const metrics = 'test/server/metrics.test.ts';

/** Broken variants of the account kept of every message, and of how the loss of the database is reported. */
export const accountMutants: readonly Mutant[] = [
  {
    name: 'a message without its row counted as on its way',
    invariant: 'what nothing will ever move is lost, and says so',
    edit: {
      in: 'place',
      find: `when "inbox"."id" is null then 'lost'`,
      replace: `when "inbox"."id" is null then 'waiting'`,
    },
    test: { file: metrics, name: 'show a message that nothing will ever move as lost' },
    isSample: true,
  },
  {
    name: 'a message of a run that has ended counted as taken',
    invariant: 'what nothing will ever move is lost, and says so',
    edit: {
      in: 'place',
      find: `when "inbox"."state" = 'taken' and "runs"."state" <> 'finished' then 'taken'`,
      replace: `when "inbox"."state" = 'taken' then 'taken'`,
    },
    test: { file: metrics, name: 'show a message that nothing will ever move as lost' },
  },
  {
    name: 'the last slice of the history never looked at again',
    invariant: 'every accepted message is counted in one place',
    edit: {
      in: 'isSettled',
      find: 'if (next === undefined || newestAt > now - settledAfterMs) return false;',
      replace: '',
    },
    test: { file: metrics, name: 'count a long history in slices' },
  },
  {
    name: 'figures of before shown while the database is away',
    invariant: 'without a database there are no counts',
    edit: { in: 'showQueue', find: 'oldest.remove();', replace: '' },
    test: { file: metrics, name: 'say that the database is away' },
  },
  {
    name: 'messages that no network brought left out of the law',
    invariant: 'messages of programs and sub-agents are accounted for, too',
    edit: { in: 'countRows', find: "await tallies.count('items'),", replace: '' },
    test: { file: metrics, name: 'show messages of programs and sub-agents' },
  },
  {
    name: 'the sent part leads to nothing',
    invariant: 'a message that was sent leads back to what it answers',
    edit: { in: 'readAccount', find: '...seedParts.map((part) => part.runId)', replace: '' },
    test: { file: 'test/store/reads/why/why.test.ts', name: 'leads back from what was sent' },
  },
  {
    name: 'a database that is full or read-only called ready',
    invariant: 'a database that takes no writes is shown',
    edit: {
      in: 'watchStore',
      find: 'if (isStoreAway(error)) trouble =',
      replace: 'if (isStoreAway(error) && now() < 0) trouble =',
    },
    test: { file: 'test/store/watch-store.test.ts', name: 'remembers that the database takes no writes' },
  },
  {
    name: 'the server of a deleted folder left alone',
    invariant: 'wakes are there again within two seconds, also after the folder of Redis was deleted',
    edit: {
      in: 'isWhole',
      find: 'return existsSync(place) && existsSync(socketPath);',
      replace: 'return place !== socketPath;',
    },
    test: { file: 'test/redis/private-server.test.ts', name: 'comes back with a folder of its own' },
  },
];
