import { expect, it } from 'vitest';
import { textOf } from '#contracts/message.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { ToolRun } from '#contracts/tool.ts';
import { parseToolSend } from '../../src/runs/tool-turns.ts';
import { readRunCause } from '../../src/store/approvals/call-approval.ts';
import type { Store } from '../../src/store/base/command.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { maxHops, maxWaiting, sendToSession } from '../../src/store/lanes/send-to-session.ts';
import { readTranscriptPage } from '../../src/store/reads/read-transcript.ts';
import { readWaitingItems } from '../../src/store/reads/read-waiting-items.ts';
import { createSessionsSendTool } from '../../src/tools/sessions-send.ts';
import { aRun } from '../agent/support/builders.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aCommand, aRoute, endWithout, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { aFamilyWorker, fenceOf } from '../store/family.ts';

/** Returns a conversation in which somebody has written and was answered. */
async function aQuietOne(
  store: Store,
  authority: Authority = 'owner',
  mode: 'steer' | 'interrupt' = 'steer',
) {
  const place = aConversation(store, { settings: { mode } });
  await place.answer(await place.begin('hello', { item: { authority } }), 'hi');
  const waiting = async () =>
    (await store.read(readWaitingItems, { laneKey: place.laneKey, limit: 50 })) ?? [];
  return { ...place, waiting };
}

function sendFrom(store: Store, run: ClaimedRun) {
  const { runId, sessionId, laneKey: sessionKey, epoch, authority } = run;
  const tool = createSessionsSendTool({ store, start: () => undefined }, {
    ...aRun,
    ...{ runId, sessionId, sessionKey, epoch, authority },
  } as ToolRun);
  return async (session: string, text = 'look at this', callId = unique('call')) => {
    const ctx = { callId, run: aRun, signal: new AbortController().signal, update: () => undefined };
    const output = await tool.execute(tool.inputSchema.parse({ session, text }), ctx);
    if ('parked' in output) throw new Error('the tool waits');
    return output;
  };
}

describeEachDatabase('sessions_send', (open) => {
  it('begins a run in the other conversation, which answers there', async () => {
    const [here, there] = [aConversation(open()), await aQuietOne(open())];
    const run = await here.begin('tell them');
    const sent = await sendFrom(open(), run)(there.laneKey, 'The tide\nis high.');
    expect(JSON.parse(sent.text)).toMatchObject({ status: 'accepted', session: there.laneKey });
    const begun = await there.claimRun();
    expect(begun).toMatchObject({ authority: 'owner', target: aRoute(there.conversation) });
    const [read] = await open().read(readTranscriptPage, { sessionId: begun.sessionId, limit: 1 });
    expect(textOf(read?.parts ?? [])).toBe(
      `[Sent here by your run in the conversation ${here.laneKey}, not by a person. Your answer goes to this conversation.]\nThe tide\nis high.`,
    );
    // The sending run still answers with its own words.
    expect(parseToolSend('sessions_send', sent.metadata)).toBeUndefined();
  });

  it('stores one message for a repeated call, also once its run has ended, and two for two calls', async () => {
    const [here, there] = [aConversation(open()), await aQuietOne(open())];
    const run = await here.begin('go');
    const send = sendFrom(open(), run);
    const sent = await send(there.laneKey, 'once', 'call-1');
    expect(await send(there.laneKey, 'once', 'call-1')).toEqual(sent);
    await send(there.laneKey, 'twice', 'call-2');
    expect(await there.waiting()).toHaveLength(2);
    await here.command({ kind: 'stop', isPrivileged: true, isAll: false });
    expect(await send(there.laneKey, 'once', 'call-1')).toEqual(sent);
    await expect(send(there.laneKey, 'late', 'call-3')).rejects.toThrow('asked to stop');
    await endWithout(open(), run, 'cancelled');
    expect(await there.waiting()).toHaveLength(2);
  });

  it.each<[Authority, Authority, Authority]>([
    ['owner', 'owner', 'owner'],
    ['owner', 'guest', 'guest'],
    ['member', 'owner', 'member'],
    ['guest', 'member', 'guest'],
  ])(
    'gives a message of a run with the rights of %s, sent where %s wrote last, those of %s',
    async (from, to, least) => {
      const [here, there] = [aConversation(open()), await aQuietOne(open(), to)];
      const run = await here.begin('go', { item: { authority: from } });
      await open().write(sendToSession, { ...fenceOf(run), callId: 'c', toLane: there.laneKey, text: 'x' });
      expect((await there.claimRun()).authority).toBe(least);
    },
  );

  it('asks for an owner, like messages to other conversations', () => {
    const run = { ...aRun, authority: 'guest' } as ToolRun;
    expect(createSessionsSendTool({ store: open(), start: () => undefined }, run)).toMatchObject({
      ...{ authority: 'owner', replay: 'durable', parallelSafe: false },
    });
  });

  it(`passes a message on ${maxHops} times at most, whichever conversations it goes through`, async () => {
    const places = await Promise.all([0, 1, 2].map(() => aQuietOne(open())));
    const [first, ...others] = places;
    if (first === undefined) throw new Error('test error: no conversation');
    let run = await first.begin('go');
    const ring = [...others, first, ...others];
    for (const next of ring.slice(0, maxHops)) {
      await sendFrom(open(), run)(next.laneKey);
      await endWithout(open(), run, 'error');
      run = await next.claimRun();
    }
    await expect(sendFrom(open(), run)(ring[maxHops]?.laneKey ?? '')).rejects.toThrow('3 times, the maximum');
  });

  it('counts the way of a message through sub-agents, too', async () => {
    const there = await aQuietOne(open());
    const worker = aFamilyWorker(open());
    const { run, lane } = await worker.begin();
    const from = await aQuietOne(open());
    await worker.answer(run, 'hi');
    await sendFrom(open(), await from.begin('go'))(lane.key);
    const relayed = await worker.claimRun(lane.key);
    const child = await worker.spawnOne(relayed);
    await worker.answer(relayed, 'started');
    await worker.answer(await worker.claimRun(child.laneKey), 'done');
    const announced = await worker.claimRun(lane.key);
    expect(await open().read(readRunCause, announced)).toMatchObject({ hops: 1 });
    await sendFrom(open(), announced)(there.laneKey);
    expect(await open().read(readRunCause, await there.claimRun())).toMatchObject({ hops: 2 });
  });

  it('remembers the people whose messages caused it, whose rights count for its calls', async () => {
    const [here, there] = [aConversation(open()), await aQuietOne(open())];
    const run = await here.begin('go', { sender: 'ann' });
    await sendFrom(open(), run)(there.laneKey);
    expect(await open().read(readRunCause, await there.claimRun())).toMatchObject({ askers: ['test:ann'] });
  });

  it('interrupts nobody, whatever the mode of the other conversation', async () => {
    const [here, there] = [aConversation(open()), await aQuietOne(open(), 'owner', 'interrupt')];
    const busy = await there.begin('work');
    await sendFrom(open(), await here.begin('go'))(there.laneKey);
    // A run that was asked to stop could send nothing.
    expect((await sendFrom(open(), busy)(here.laneKey)).text).toContain('accepted');
  });

  it('refuses what cannot be answered there, with a sentence that says what to do', async () => {
    const here = aConversation(open());
    const run = await here.begin('go');
    const send = sendFrom(open(), run);
    const unwritten = aConversation(open());
    await unwritten.worker.accept(
      aCommand(unwritten.conversation, { kind: 'stop', isPrivileged: true, isAll: false }),
    );
    await expect(send(here.laneKey)).rejects.toThrow('this conversation. Answer in text');
    await expect(send('agent:main:sub:1:x@main:a:b:dm:c')).rejects.toThrow('Use subagents');
    for (const session of ['nowhere', "x' or '1'='1", '*', '%'])
      await expect(send(session), session).rejects.toThrow('There is no such conversation');
    await expect(send(unwritten.laneKey)).rejects.toThrow('Nobody has written there yet');
  });

  it(`lets ${maxWaiting} messages wait in one conversation at most`, async () => {
    const [here, there] = [aConversation(open()), await aQuietOne(open())];
    const send = sendFrom(open(), await here.begin('go'));
    for (let n = 0; n < maxWaiting; n += 1) await send(there.laneKey);
    await expect(send(there.laneKey)).rejects.toThrow('already wait there');
    expect(await there.waiting()).toHaveLength(maxWaiting);
  });
});
