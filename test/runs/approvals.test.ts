import { expect, it } from 'vitest';
import { messageId } from '#contracts/ids.ts';
import { renderTrace } from '../../src/cli/render-trace.ts';
import type { CallRule } from '../../src/config/config.ts';
import type { Authority } from '../../src/contracts/outcome.ts';
import { actionFor, fitsPattern } from '../../src/runs/permit-call.ts';
import { decideOnPage, expireQuestion } from '../../src/store/access/decide-approval.ts';
import { readOpenCallApprovals } from '../../src/store/approvals/call-approval.ts';
import { readGrants, revokeGrant } from '../../src/store/approvals/grant.ts';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { readTimeline } from '../../src/store/reads/read-timeline.ts';
import { readWhy } from '../../src/store/reads/why/read-why.ts';
import { callsTools, type ScriptedCall, says } from '../agent/support/scripted-model.ts';
import { describeEachDatabase, type OpenStore } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { ann, call, eve, openAsking, owner, readParts } from './asking-run.ts';

describeEachDatabase('a call that needs an approval', (store: OpenStore) => {
  const partsOf = ({ conversationKey }: { conversationKey: string }) =>
    store().read(readParts, { conversationKey });
  const outcomesOf = async ({ laneKey }: { laneKey: string }) =>
    (await readLane(store(), laneKey)).inbox.map(({ outcome }) => outcome);

  it('asks with buttons and parks the run in one commit, and runs the call once after the approval', async () => {
    const run = openAsking(store());
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
      const run = openAsking(store());
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
      const run = openAsking(store(), { validMs: 0 });
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

  it('shows that a question has expired as soon as the run continues', async () => {
    const run = openAsking(store(), { validMs: 0 });
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    await run.rest.deliver({ kind: 'sent', receipts: [messageId('7')] });
    const claimed = await run.rest.claim();
    expect(claimed).toMatchObject({ kind: 'run', expired: { deliveries: [run.conversationKey] } });
    expect((await run.claimPart()).part.content).toMatchObject({
      kind: 'edit',
      messageId: '7',
      text: { text: expect.stringContaining('nobody answered in time') },
    });
  });

  it('shows the end in a message that only a late press has made known', async () => {
    const run = openAsking(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    const [{ id = '' } = {}] = await run.questions();
    await run.record(await run.claimPart(), { kind: 'unknown', reason: 'no answer' });
    await run.press(id, 'always');
    // Its edit has no message to change.
    expect(await run.rest.claimNext()).toEqual({ kind: 'empty' });
    const pressed = messageId('9');
    const late = { id, verdict: 'deny', by: ann, pressed } as const;
    expect((await store().write(decideOnPage, late)).decided.kind).toBe('late');
    const { content } = (await run.claimPart()).part;
    expect(content).toMatchObject({ kind: 'edit', messageId: '9' });
    expect(JSON.stringify(content)).toContain('exactly this for the next 30 days');
  });

  it('shows the decision in the timeline, even if it came while the question was on its way', async () => {
    const run = openAsking(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    const claimed = await run.claimPart();
    await run.decide('approve');
    await run.record(claimed, { kind: 'sent', receipts: [messageId('7')] });
    expect((await run.claimPart()).part.content).toMatchObject({ kind: 'edit', messageId: '7' });
    const items = await store().read(readTimeline, { laneKey: run.laneKey, limit: 9 });
    expect(items.map(({ text }) => text.split('\n')[0])).toEqual(['go', 'act: approved by test:ann.']);
    expect(items.some(({ buttons }) => buttons !== undefined)).toBe(false);
  });

  it('tells why who was asked about which call, and what became of it', async () => {
    const run = openAsking(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    const [{ id = '', runId = '' } = {}] = await run.questions();
    const storyOf = async (of: string, withExcerpts = false) => {
      const found = await store().read(readWhy, { id: of, withExcerpts });
      return found.kind === 'account' ? renderTrace(found.account) : found.kind;
    };
    const asked = `question ${id} was asked about act (1) of run ${runId}, of test:ann with authority member, or an owner`;
    expect(await storyOf(id)).toContain(`question ${id}\n`);
    expect(await storyOf(id)).toContain(asked);
    expect(await storyOf(id)).toContain(`question ${id} is open until `);
    expect(await storyOf(id, true)).toContain(`act (1) “{ "of": "1" }”`);
    await run.decide('always');
    for (const of of [id, runId, `${runId}/1`, `approval:${id}`]) {
      expect(await storyOf(of)).toContain(asked);
      expect(await storyOf(of)).toContain(
        `question ${id} was approved by test:ann, for this call from now on`,
      );
    }
  });

  it('lets only the person who caused the call and owners decide', async () => {
    const run = openAsking(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    expect((await run.decide('approve', eve)).kind).toBe('foreign');
    expect((await run.decide('approve', { ...ann, authority: 'guest' })).kind).toBe('foreign');
    expect((await run.decide('approve', { ...ann, authority: undefined })).kind).toBe('foreign');
    const linked = { ...eve, refs: ['test:eve', 'test:ann'] };
    expect((await run.decide('approve', linked)).kind).toBe('approved');
  });

  it('tells later deciders who decided, and decides once', async () => {
    const run = openAsking(store());
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
    const run = openAsking(store());
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
    const run = openAsking(store());
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
    const run = openAsking(store());
    await run.say('go');
    await run.play(callsTools(call('1')), says('never reached'));
    await run.decide('approve');
    run.now.present = 'guest';
    const { shown } = await run.play(says('no longer'));
    expect(run.ran).toEqual([]);
    expect(shown()).toContain('the person who asked for this may no longer do so');
  });

  it('grants exactly the shown call in its conversation, until it is revoked', async () => {
    const run = openAsking(store());
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
  ])(
    "doesn't extend a grant to %s",
    async (_, {
      made = call('1'),
      elsewhere = false,
    }: {
      readonly made?: ScriptedCall;
      readonly elsewhere?: boolean;
    }) => {
      const run = openAsking(store());
      await run.say('go');
      await run.play(callsTools(call('1')), says('never reached'));
      await run.decide('always');
      await run.play(says('done'));
      const other = elsewhere ? openAsking(store()) : run;
      await other.say('again');
      await other.play(callsTools(made), says('done'));
      expect(run.ran).toEqual(['1']);
      expect(other === run || other.ran.length === 0).toBe(true);
    },
  );

  it("doesn't extend a grant to a less trusted person", async () => {
    const run = openAsking(store());
    const again = async (authority: Authority) => {
      await run.rest.worker.accept(run.rest.saying('again', { item: { authority } }));
      return (await run.play(callsTools(call('1', 'anyone')), says('done'))).exit?.kind;
    };
    expect(await again('member')).toBe('parked');
    await run.decide('always');
    await run.play(says('done'));
    expect(await again('member')).not.toBe('parked');
    expect(await again('guest')).toBe('parked');
    expect(run.ran).toHaveLength(2);
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
