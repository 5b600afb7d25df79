import { expect, it } from 'vitest';
import { localSecond } from '#channel-kit/time-text.ts';
import { renderRecord } from '../../../../src/cli/render-record.ts';
import { renderTrace } from '../../../../src/cli/render-trace.ts';
import { raiseAlert, resolveAlert } from '../../../../src/store/alerts/alert.ts';
import { enqueueItems } from '../../../../src/store/intake/enqueue-items.ts';
import { commitToolTurn, markToolStarted } from '../../../../src/store/lanes/commit-turn.ts';
import { addProcess } from '../../../../src/store/processes/process-records.ts';
import { readWhy, type Why } from '../../../../src/store/reads/why/read-why.ts';
import { openSignIn } from '../../../../src/store/sign-ins/sign-ins.ts';
import { aConversation } from '../../a-conversation.ts';
import { aBot, approve } from '../../access-builders.ts';
import { account, aMessage, unique } from '../../builders.ts';
import { describeEachDatabase } from '../../each-database.ts';

const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`;

describeEachDatabase('ids that why understands', (open, { sql }) => {
  const why = (id: string): Promise<Why> => open().read(readWhy, { id, withExcerpts: false });
  /** Returns the id's story without the times at the start of lines. */
  const storyOf = async (id: string): Promise<readonly string[]> => {
    const found = await why(id);
    if (found.kind !== 'account' && found.kind !== 'record') throw new Error(`${id} is ${found.kind}`);
    const text = found.kind === 'account' ? renderTrace(found.account) : renderRecord(found.record);
    return text.split('\n').map((line) => line.replace(/^(?:\d\S+ [\d:]+|now) +/, ''));
  };

  /** Returns a run that calls tools with these ids. */
  const aRunWithCalls = async (...callIds: readonly string[]) => {
    const talk = aConversation(open());
    const run = await talk.begin('go');
    const held = { laneKey: run.laneKey, epoch: run.epoch, runId: run.runId };
    const messageId = unique('turn');
    const calls = callIds.map((callId) => ({ callId, name: 'act', input: '{}' }));
    const message = { id: messageId, sessionId: run.sessionId, model: 'test', parts: [] };
    await open().write(commitToolTurn, { ...held, message, calls });
    for (const callId of callIds) await open().write(markToolStarted, { ...held, messageId, callId });
    return { ...talk, run, messageId };
  };

  it('finds a tool call by its run or message, or by its own id if it is recent', async () => {
    const [call, other] = [unique('toolu_'), unique('toolu_')];
    const { run, messageId } = await aRunWithCalls(call, other);
    for (const id of [`${run.runId}/${call}`, `${messageId}/${call}`, call]) {
      const story = await storyOf(id);
      expect(story[0]).toBe(`tool call ${messageId}/${call}`);
      expect(story).toContainEqual(expect.stringContaining(`run ${run.runId} began in lane `));
      expect(story).toContain(`tool act (${call}): started, no result yet`);
    }
    expect(await why(`${run.runId}/${unique('none')}`)).toEqual({ kind: 'unknown' });
  });

  it('lists the candidates if several tool calls share an id', async () => {
    const call = unique('call_');
    const [one, other] = [await aRunWithCalls(call), await aRunWithCalls(call)];
    const found = await why(call);
    const names = found.kind === 'several' ? found.candidates.map(({ name }) => name) : [];
    expect(names.toSorted()).toEqual([`${one.messageId}/${call}`, `${other.messageId}/${call}`].toSorted());
    for (const name of names) expect((await storyOf(name))[0]).toBe(`tool call ${name}`);
  });

  it('finds a run by its trace id', async () => {
    const { run } = await aRunWithCalls(unique('call_'));
    expect((await storyOf(run.runId.replaceAll('-', '')))[0]).toBe(`run ${run.runId}`);
  });

  it('finds a message by the key that a program gave it', async () => {
    const { lane } = aConversation(open());
    const key = unique('daily');
    const content = {
      text: 'hi',
      prompt: 'hi',
      sender: { id: 'api', name: 'API' },
      sentAt: 1,
      attachments: [],
    };
    const item = {
      id: crypto.randomUUID(),
      source: 'api',
      sourceKey: `api:${key}`,
      content,
      reach: 'mode',
      target: 'record',
      authority: 'owner',
      reservedRunId: crypto.randomUUID(),
    } as const;
    await open().write(enqueueItems, { items: [{ lane, item }] });
    for (const id of [key, item.reservedRunId]) expect((await storyOf(id))[0]).toBe(`item ${item.id}`);
  });

  it('finds a session with its state and its successor', async () => {
    const { begin, answer, say, claim, laneKey } = aConversation(open());
    const run = await begin('hi');
    const first = run.sessionId;
    const current = await storyOf(first);
    expect(current[0]).toBe(`session ${first}`);
    expect(current).toEqual(
      expect.arrayContaining([
        `lane key: ${laneKey}`,
        'cost: $0.000000',
        expect.stringMatching(new RegExp(`^created at: ${time}$`)),
        `last run id: ${run.runId}`,
        'lane:',
        '  run:',
        `    id: ${run.runId}`,
        '  waiting count: 0',
      ]),
    );
    await answer(run, 'hello');
    await say('/new', { item: { kind: 'command' } });
    await claim();
    const story = await storyOf(first);
    const [, next = ''] = /^next session id: (\S+)$/m.exec(story.join('\n')) ?? [];
    expect((await storyOf(next))[0]).toBe(`session ${next}`);
    expect(story).toContainEqual(expect.stringMatching(new RegExp(`^ended at: ${time}$`)));
    expect(story).not.toContain('lane:');
  });

  it('finds a lane, even by an alias of its key, with its run and waiting items', async () => {
    const { say, begin, laneKey } = aConversation(open(), { settings: { mode: 'followup' } });
    const run = await begin('hi');
    const ids = [crypto.randomUUID(), crypto.randomUUID()];
    for (const id of ids) await say('more', { item: { id } });
    const state = [
      'mode: followup',
      `session id: ${run.sessionId}`,
      'run:',
      `  id: ${run.runId}`,
      `waiting: ${ids.join(', ')}`,
      'waiting count: 2',
    ];
    const story = await storyOf(laneKey);
    expect(story[0]).toBe(`lane ${laneKey}`);
    expect(story).toEqual(expect.arrayContaining(state));
    const alias = unique('main:bot:id');
    await sql(`insert into "laneAliases" ("key", "laneKey", "identity", "peer")
      values ('${alias}', '${laneKey}', 'link.x', 'test:ann')`);
    const led = await storyOf(alias);
    expect(led[0]).toBe(`lane ${alias}`);
    expect(led).toEqual(expect.arrayContaining([`leads to: ${laneKey}`, ...state]));
  });

  it('finds a conversation with its parts to be sent and its unknown parts', async () => {
    const { begin, answer, deliver, conversationKey, conversation } = aConversation(open());
    const run = await begin('hi');
    await answer(run, 'hello');
    const name = [`conversation ${conversationKey}`, `key: ${conversationKey}`];
    expect(await storyOf(conversationKey)).toEqual([...name, `open parts: ${run.runId}:1`]);
    await deliver({ kind: 'unknown', reason: 'cut off' });
    const after = `unknown parts: ${run.runId}:1`;
    expect(await storyOf(`test:${conversation}`)).toEqual([...name, after]);
    await sql(`update "conversations" set "movedTo" = '-9', "admittedBy" = 'test:bob', "unreachableAt" = 5
      where "key" = '${conversationKey}'`);
    expect(await storyOf(conversationKey)).toEqual([
      ...name,
      'moved to: -9',
      'admitted by: test:bob',
      `unreachable at: ${localSecond(5)}`,
      after,
    ]);
  });

  it('finds a bot account and the process that receives for it', async () => {
    const id = `folder/${unique('12')}`;
    await open().write(addProcess, { id, folder: unique('folder'), role: 'gateway', ended: [] });
    const bot = await aBot(open());
    expect(await storyOf(bot.account)).toEqual([
      `account ${bot.account}`,
      `key: ${bot.account}`,
      expect.stringMatching(/^holder: boot/),
      expect.stringMatching(new RegExp(`^lease until: ${time}$`)),
    ]);
    await sql(`update "accounts" set "holder" = '${id}' where "key" = '${bot.account}'`);
    expect(await storyOf(id)).toEqual([
      `process ${id}`,
      `id: ${id}`,
      'role: gateway',
      expect.stringMatching(new RegExp(`^started at: ${time}$`)),
      `accounts: ${bot.account}`,
    ]);
    await sql(`update "accounts" set "leaseUntil" = 5 where "key" = '${bot.account}'`);
    expect((await storyOf(bot.account)).join('\n')).not.toContain('holder');
    expect(await storyOf(id)).toHaveLength(4);
  });

  it('finds a question, even by its code, with its message and decision', async () => {
    await sql('delete from "pairingTries"');
    const bot = await aBot(open());
    const eve = unique('eve');
    await bot.asks(eve, 'WXKF2RE8');
    const byCode = await storyOf('wxkf-2re8');
    const [, id = ''] = /^question (\S+)$/.exec(byCode[0] ?? '') ?? [];
    expect(byCode.slice(1)).toEqual([
      expect.stringMatching(
        /^event .* reached test\/bot\S+: refused \(dm-not-paired\): its sender hasn't been approved$/,
      ),
      `question ${id} was asked: whether to let test:${eve} in at ${bot.account}`,
      expect.stringMatching(/^notice .*:pairing to .*: to be sent at /),
      expect.stringMatching(new RegExp(`^question ${id} is open until ${time}; an owner can decide it$`)),
    ]);
    expect(await storyOf(id.toUpperCase())).toEqual(byCode);
    expect(await storyOf(`test:${eve}`)).toEqual([
      `person test:${eve}`,
      `ref: test:${eve}`,
      `name: Person ${eve}`,
      'requests:',
      `  account: ${bot.account}`,
      expect.stringMatching(new RegExp(`^  created at: ${time}$`)),
      expect.stringMatching(new RegExp(`^  expires at: ${time}$`)),
      `  approval id: ${id}`,
      '  is declined: false',
    ]);
    const event = /^event (\S+) /.exec(byCode[1] ?? '')?.[1] ?? '';
    expect((await storyOf(event)).slice(1)).toEqual(byCode.slice(1));

    expect(await approve(open(), 'WXKF2RE8')).toMatchObject({ kind: 'approved' });
    const after = await storyOf(id);
    expect(after[1]).toBe(`question ${id} was asked: whether to let a person in`);
    expect(after.at(-1)).toBe(`question ${id} was approved by the command line`);
    expect(after).toContainEqual(expect.stringContaining(`notice pairing:${id}:approved to `));
    expect((await storyOf(`pairing:${id}:approved`)).at(-1)).toBe(after.at(-1));
    expect(await storyOf(`test:${eve}`)).toEqual(
      expect.arrayContaining([
        'approvals:',
        `  account: ${bot.account}`,
        '  role: user',
        '  approved by: console',
      ]),
    );
    expect(await why('WXKF2RE8')).toEqual({ kind: 'unknown' });
  });

  it('finds a question that expired undecided', async () => {
    const bot = await aBot(open());
    const eve = unique('eve');
    await bot.asks(eve, 'WXKF2RE9');
    const [, id = ''] = /^question (\S+)$/.exec((await storyOf('WXKF2RE9'))[0] ?? '') ?? [];
    await sql(`update "approvals" set "expiresAt" = 5 where "id" = '${id}'`);
    expect((await storyOf(id)).at(-1)).toBe(`question ${id} expired at ${localSecond(5)}`);
    await sql(`update "approvals" set "state" = 'denied', "decidedBy" = 'test:bob' where "id" = '${id}'`);
    await sql(`update "pairings" set "codeHash" = null where "id" = '${id}'`);
    expect((await storyOf(id)).at(-1)).toBe(`question ${id} was denied by test:bob`);
    expect(await storyOf(`test:${eve}`)).toContain('  is declined: true');
  });

  it('finds a person, even one known only to the configuration, or a linked one', async () => {
    await aConversation(open()).say('hi');
    const ref = `test:${unique('cy')}`;
    expect(await storyOf(ref)).toEqual([`person ${ref}`, `ref: ${ref}`]);
    const dan = unique('dan');
    await aConversation(open()).worker.accept(aMessage({ conversation: dan, text: 'hi', sender: dan }));
    expect((await storyOf(`test:${dan}`)).slice(2)).toEqual([`conversation: test/bot/${dan}`]);
    const other = `other:${unique('cy')}`;
    const identity = unique('link.');
    for (const peer of [ref, other])
      await sql(`insert into "links" ("peer", "identity", "route", "linkedAt")
        values ('${peer}', '${identity}', '{}', 5)`);
    expect((await storyOf(ref)).slice(2)).toEqual([
      'link:',
      `  linked at: ${localSecond(5)}`,
      `  others: ${other}`,
    ]);
  });

  it('finds a signed-in browser', async () => {
    const [id, at] = [unique('sign-in'), Date.now()];
    const signIn = { id, secretHash: unique('hash'), issuer: unique('issuer'), browser: 'Firefox on Linux' };
    await open().write(openSignIn, { ...signIn, at, expiresAt: at + 1000 });
    expect(await storyOf(id)).toEqual([
      `sign-in ${id}`,
      `id: ${id}`,
      'browser: Firefox on Linux',
      ...['created', 'last seen', 'expires'].map((word) =>
        expect.stringMatching(new RegExp(`^${word} at: ${time}$`)),
      ),
    ]);
    expect(JSON.stringify(await why(id))).not.toContain(signIn.secretHash);
  });

  it('finds an alert with its start, its notification and its end', async () => {
    const subject = unique('telegram.work');
    for (let times = 0; times < 2; times++) await open().write(raiseAlert, { kind: 'channel-down', subject });
    const id = crypto.randomUUID();
    await sql(`update "ownerNotices" set "id" = '${id}', "count" = 2, "toldAt" = "raisedAt", "partKey" = 'owner:x'
      where "subject" = '${subject}'`);
    const story = await storyOf(id);
    expect(story[0]).toBe(`alert ${id}`);
    const told = ['kind: channel-down', `subject: ${subject}`, 'count: 2', 'part key: owner:x'];
    expect(story).toEqual(expect.arrayContaining(told));
    expect(story.join('\n')).not.toContain('ended at');
    await open().write(resolveAlert, { kind: 'channel-down', subject });
    expect(await storyOf(id)).toContainEqual(expect.stringMatching(new RegExp(`^ended at: ${time}$`)));
  });

  it("finds nothing for an id of the right form that doesn't exist", async () => {
    for (const id of [
      crypto.randomUUID(),
      'abcdefghjk',
      'ABCD2345',
      'nonet:5',
      `${account}x`,
      'f'.repeat(32),
    ])
      expect(await why(id), id).toEqual({ kind: 'unknown' });
  });
});
