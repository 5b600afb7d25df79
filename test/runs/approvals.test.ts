import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { CallRule } from '../../src/config/config.ts';
import type { Authority } from '../../src/contracts/outcome.ts';
import type { Tool } from '../../src/contracts/tool.ts';
import { actionFor, createPermit, fitsPattern } from '../../src/runs/permit-call.ts';
import { decideOnPage, expireQuestion } from '../../src/store/access/decide-approval.ts';
import type { Decider } from '../../src/store/access/sender-roles.ts';
import { readOpenCallApprovals } from '../../src/store/approvals/call-approval.ts';
import { readGrants, revokeGrant } from '../../src/store/approvals/grant.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { aTool } from '../agent/support/builders.ts';
import {
  callsTools,
  type Play,
  type ScriptedCall,
  says,
  scriptedModel,
} from '../agent/support/scripted-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { unique } from '../store/builders.ts';
import { describeEachDatabase, type OpenStore } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { isLong } from '../support/long-run.ts';
import { playNext } from './run-builders.ts';

const ann: Decider = {
  ref: 'test:ann',
  label: 'test:ann',
  isOwner: false,
  authority: 'member',
  role: 'user',
};
const owner: Decider = { ref: 'page', label: 'the page', isOwner: true, role: 'user' };
const eve: Decider = {
  ref: 'test:eve',
  label: 'test:eve',
  isOwner: false,
  authority: 'member',
  role: 'user',
};

const call = (id: string, name = 'act'): ScriptedCall => ({ id, name, input: { of: id } });

/** Opens a conversation of a member whose agent makes `calls`; `validMs`: how long a question stays open. */
function open(store: Store, { validMs = 900_000 } = {}) {
  const { conversation, conversationKey, laneKey, say, claimPart, record, ...rest } = aConversation(store);
  const ran: string[] = [];
  const act = (name: string, changes: Partial<Tool> = {}) =>
    aTool(name, {
      approval: 'ask',
      authority: 'member',
      execute: async (_, { callId }) => ({ text: `${callId} ran as ${ran.push(callId)}` }),
      ...changes,
    });
  const tools = [
    act('act'),
    act('beside', { parallelSafe: true }),
    act('free', { approval: undefined as never }),
  ];
  const rules: CallRule[] = [];
  const authority: Authority = 'member';
  const now: { present: Authority } = { present: authority };
  const permit = createPermit({
    store,
    rulesOf: () => rules,
    authoritiesOf: async (refs) => refs.map(() => now.present),
  });
  const play = async (...plays: readonly Play[]) => {
    const model = scriptedModel(...plays);
    const over = { approvals: { validMs, owners: [] }, permit };
    const { exit } = await playNext(store, laneKey, { model, tools, over });
    return { exit, shown: () => JSON.stringify(model.requests.at(-1)?.messages), model };
  };
  const questions = async () =>
    (await store.read(readOpenCallApprovals, { limit: 500, isDue: false }))
      .filter((each) => each.laneKey === laneKey)
      .reverse();
  const decide = async (verdict: 'approve' | 'always' | 'deny', by: Decider = ann, which = 0) => {
    const id = (await questions())[which]?.id ?? 'none';
    return (await store.write(decideOnPage, { id, verdict, by })).decided;
  };
  const sayAs = (text: string) => say(text, { item: { authority } });
  return {
    conversation,
    conversationKey,
    laneKey,
    say: sayAs,
    rest,
    ran,
    rules,
    now,
    play,
    questions,
    decide,
    claimPart,
    record,
  };
}

/** Reads the texts of the conversation's parts, and the buttons of the first. */
const readParts: StoreQuery<
  { readonly conversationKey: string },
  readonly { text: string; buttons: readonly string[] }[]
> = {
  query: 'readParts',
  run: async (tx, { conversationKey }) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select('content')
      .where('conversationKey', '=', conversationKey)
      .orderBy('place')
      .execute();
    return rows.map(({ content }) => {
      const { text, buttons = [] } = JSON.parse(content);
      return { text: text.text, buttons: buttons.map(({ label }: { label: string }) => label) };
    });
  },
};

describeEachDatabase('a call that needs an approval', (store: OpenStore) => {
  const partsOf = ({ conversationKey }: { conversationKey: string }) =>
    store().read(readParts, { conversationKey });
  const outcomesOf = async ({ laneKey }: { laneKey: string }) =>
    (await readLane(store(), laneKey)).inbox.map(({ outcome }) => outcome);

  it('asks with buttons and parks the run in one commit, and runs the call once after the approval', async () => {
    const run = open(store());
    await run.say('go');
    const { exit } = await run.play(callsTools(call('1')), says('never reached'));
    expect([exit, run.ran]).toEqual([{ kind: 'parked' }, []]);
    expect(await partsOf(run)).toEqual([
      {
        text: 'May I use act like this?\n{\n "of": "1"\n}',
        buttons: ['Approve', 'Always, for this', 'Refuse'],
      },
    ]);
    expect(await run.decide('approve')).toEqual({ kind: 'approved', text: 'act: approved by test:ann.' });
    await run.play(says('done'));
    expect([run.ran, await outcomesOf(run)]).toEqual([['1'], ['answered']]);
    expect((await partsOf(run)).map(({ text }) => text)).toEqual([
      'act: approved by test:ann.\n{\n "of": "1"\n}',
      'done',
    ]);
  });

  it.each([['deny', 'permission denied']] as const)(
    'never runs a call that was answered with %s, and answers without tools',
    async (verdict, result) => {
      const run = open(store());
      await run.say('go');
      await run.play(callsTools(call('1'), call('2', 'free')), says('never reached'));
      await run.decide(verdict);
      const { shown, model } = await run.play(says('I may not.'));
      expect([run.ran, await outcomesOf(run)]).toEqual([[], ['answered']]);
      expect(shown()).toContain(result);
      expect(shown()).toContain('cancelled');
      expect(model.requests[0]?.tools).toEqual([]);
    },
  );

  it('denies a call when its question expires, also if only the claim notices', async () => {
    for (const isSwept of [true, false]) {
      const run = open(store(), { validMs: 1 });
      await run.say('go');
      await run.play(callsTools(call('1')), says('never reached'));
      const due = await store().read(readOpenCallApprovals, { limit: 500, isDue: true });
      const id = due.find((each) => each.laneKey === run.laneKey)?.id ?? 'none';
      expect((await store().write(decideOnPage, { id, verdict: 'approve', by: owner })).decided.kind).toBe(
        'late',
      );
      if (isSwept) await store().write(expireQuestion, { id });
      const { shown } = await run.play(says('too late'));
      expect([run.ran, await outcomesOf(run)]).toEqual([[], ['answered']]);
      expect(shown()).toContain('nobody answered the question in time');
      expect((await partsOf(run))[0]?.text).toContain('nobody answered in time');
    }
  });

  it('lets only the person who caused the call and owners decide', async () => {
    const run = open(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    expect((await run.decide('approve', eve)).kind).toBe('foreign');
    expect((await run.decide('approve', { ...ann, authority: 'guest' })).kind).toBe('foreign');
    expect((await run.decide('approve', { ...ann, authority: undefined })).kind).toBe('foreign');
    const linked = { ...eve, refs: ['test:eve', 'test:ann'] };
    expect((await run.decide('approve', linked)).kind).toBe('approved');
  });

  it('tells later deciders who decided, and decides once', async () => {
    const run = open(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    const [{ id = '' } = {}] = await run.questions();
    const answers = await Promise.all(
      [ann, owner, ann].map((by, index) =>
        store().write(decideOnPage, { id, verdict: index === 1 ? 'deny' : 'approve', by }),
      ),
    );
    const kinds = answers.map(({ decided }) => decided.kind);
    expect(kinds.filter((kind) => kind === 'late')).toHaveLength(2);
    const isApproved = kinds.includes('approved');
    await run.play(says('done'));
    expect(run.ran).toEqual(isApproved ? ['1'] : []);
  });

  it('waits for every question of a parallel batch, and a denial ends the others', async () => {
    const run = open(store());
    await run.say('go');
    await run.play(
      callsTools(call('1', 'beside'), call('2', 'beside'), call('3', 'beside')),
      says('never reached'),
    );
    await run.decide('approve');
    expect((await store().read(readLaneLease, run.laneKey)) > 0).toBe(true);
    await run.decide('deny');
    expect(await run.questions()).toEqual([]);
    await run.play(says('done'));
    expect(run.ran).toEqual([]);
  });

  it('ends the questions of a run that is stopped', async () => {
    const run = open(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    const [{ id = '' } = {}] = await run.questions();
    await run.rest.command({ kind: 'stop', all: true, by: 'ann' } as never);
    expect(await run.questions()).toEqual([]);
    expect((await store().write(decideOnPage, { id, verdict: 'approve', by: owner })).decided.kind).toBe(
      'late',
    );
    expect((await partsOf(run))[0]?.text).toContain('act: no longer needed.');
  });

  it('denies an approved call whose person has lost the right before it starts', async () => {
    const run = open(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    await run.decide('approve');
    run.now.present = 'guest';
    const { shown } = await run.play(says('no longer'));
    expect(run.ran).toEqual([]);
    expect(shown()).toContain('the person who asked for this may no longer do so');
  });

  it('grants exactly the shown call in its conversation, until it is revoked', async () => {
    const run = open(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    await run.decide('always');
    await run.play(says('done'));
    const again = async (made: ScriptedCall, where = run) => {
      await where.say('again');
      const { exit } = await where.play(callsTools(made), says('done'));
      return exit?.kind === 'parked' ? 'asked' : 'ran';
    };
    expect(await again(call('1'))).toBe('ran');
    const [grant] = await store().read(readGrants, { laneKey: run.laneKey });
    await store().write(revokeGrant, { id: grant?.id ?? '', by: 'console' });
    expect(await again(call('1'))).toBe('asked');
    expect(run.ran).toHaveLength(2);
  });

  it.each([
    ['another call', { made: call('2') }],
    ['another conversation', { elsewhere: true }],
    ['a less trusted person', { authority: 'guest' as const }],
  ])(
    "doesn't extend a grant to %s",
    async (_, {
      made = call('1'),
      elsewhere = false,
      authority,
    }: {
      readonly made?: ScriptedCall;
      readonly elsewhere?: boolean;
      readonly authority?: Authority;
    }) => {
      const run = open(store());
      await run.say('go');
      await run.play(callsTools(call('1')), says('never reached'));
      await run.decide('always');
      await run.play(says('done'));
      const other = elsewhere ? open(store()) : run;
      if (authority === undefined) await other.say('again');
      else await other.rest.worker.accept(other.rest.saying('again', { item: { authority } }));
      await other.play(callsTools(made), says('done'));
      expect(run.ran).toEqual(['1']);
      expect(other === run || other.ran.length === 0).toBe(true);
    },
  );

  it('runs a call at most once, only if it was approved and asked for, whatever is pressed and killed', async () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('press' as const),
        verdict: fc.constantFrom('approve' as const, 'always' as const, 'deny' as const),
        by: fc.constantFrom(ann, eve, owner),
        which: fc.nat(3),
      }),
      fc.record({ kind: fc.constantFrom('play' as const, 'stop' as const, 'expire' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('act', 'beside', 'free'), { minLength: 1, maxLength: 4 }),
        fc.array(step, { maxLength: 10 }),
        async (names, steps) => {
          const run = open(store());
          const calls = names.map((name, index) => call(unique(`${index}`), name));
          const approved = new Set<string>();
          const seen = new Map<string, string>();
          const note = async () => {
            for (const each of await run.questions()) seen.set(each.id, each.callId);
          };
          await run.say('go');
          await run.play(callsTools(...calls), says('done'));
          for (const each of steps) {
            await note();
            const ids = [...seen.keys()];
            if (each.kind === 'press' && ids.length > 0) {
              const id = ids[each.which % ids.length] ?? '';
              const { decided } = await store().write(decideOnPage, {
                id,
                verdict: each.verdict,
                by: each.by,
              });
              if (decided.kind === 'approved') approved.add(seen.get(id) ?? '');
              expect(each.by === eve && decided.kind === 'approved').toBe(false);
            }
            if (each.kind === 'stop') await run.rest.command({ kind: 'stop', all: true, by: 'ann' } as never);
            if (each.kind === 'play') await run.play(says('done')).catch(() => undefined);
          }
          const free = new Set(calls.filter(({ name }) => name === 'free').map(({ id }) => id));
          expect(new Set(run.ran).size).toBe(run.ran.length);
          expect(run.ran.filter((id) => !approved.has(id) && !free.has(id))).toEqual([]);
        },
      ),
      { numRuns: isLong ? 2_000 : 25 },
    );
  });
});

const readLaneLease: StoreQuery<string, number> = {
  query: 'readLaneLease',
  run: async (tx, key) => {
    const lane = await tx.db
      .selectFrom('lanes')
      .select('leaseUntil')
      .where('key', '=', key)
      .executeTakeFirstOrThrow();
    return lane.leaseUntil - tx.now;
  },
};

it.each([
  ['git log*', 'git log --oneline', true, true],
  ['git log*', 'git logs', true, true],
  ['git log *', 'git log', false, false],
  ['git log*', 'git log; rm -r .', false, true],
  ['git log*', 'git log $(rm -r .)', false, true],
  ['git log*', 'git log\nrm -r .', false, true],
  ["echo 'a;b' *", "echo 'a;b' c", true, true],
  ['*.md', 'notes/a.md', true, true],
  ['a*b*c', 'a1b2b3c', true, true],
  ['a*bc*c', 'abc', false, false],
  ['ls', 'ls', true, true],
  ['ls', 'ls ', false, false],
])('matches the pattern %j with %j: in a rule that allows %j, in others %j', (pattern, text, safe, any) => {
  expect([fitsPattern(pattern, text, 'safe'), fitsPattern(pattern, text, 'any')]).toEqual([safe, any]);
});

it('applies the first rule that fits, and otherwise what the tool asks for', () => {
  const rules: readonly CallRule[] = [
    { tool: 'bash', match: { command: 'rm *' }, action: 'deny' },
    { tool: 'bash', match: { command: 'ls*' }, action: 'allow' },
    { tool: 'bash', match: { background: 'true' }, action: 'deny' },
  ];
  const bash = { name: 'bash', approval: 'ask' } as const;
  expect(actionFor(rules, bash, { command: 'rm x' })).toBe('deny');
  expect(actionFor(rules, bash, { command: 'ls -l' })).toBe('allow');
  expect(actionFor(rules, bash, { command: 'pwd', background: true })).toBe('deny');
  expect(actionFor(rules, bash, { command: 'pwd' })).toBe('ask');
  expect(actionFor(rules, { name: 'read' }, { path: 'a' })).toBe('allow');
});
