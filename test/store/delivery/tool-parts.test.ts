import { expect, it } from 'vitest';
import { systemClock } from '../../../src/channel-kit/system-clock.ts';
import type { OutboundContent } from '../../../src/contracts/outbound.ts';
import { createToolSender } from '../../../src/outbox/tool-sender.ts';
import type { Store } from '../../../src/store/base/command.ts';
import type { SendOutcome } from '../../../src/store/delivery/end-part.ts';
import { readIsPosted, storeToolParts } from '../../../src/store/delivery/tool-send.ts';
import { readTimeline } from '../../../src/store/reads/read-timeline.ts';
import { aConversation, aCourier } from '../a-conversation.ts';
import { aCommand, endWithout, routeFor } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const content = (text: string): OutboundContent => ({ kind: 'text', text: { text, spans: [] } });

/** Returns a run and what a call of its tool sends. */
async function aSpeaker(store: Store) {
  const { conversation, laneKey, worker, begin } = aConversation(store);
  const run = await begin('go');
  const { epoch, runId } = run;
  const posting = (callId: string, ...texts: readonly string[]) => ({
    ...{ laneKey, epoch, runId, key: `${runId}:tool:${callId}`, route: routeFor(run) },
    contents: texts.map(content),
  });
  const shown = async () => (await store.read(readTimeline, { laneKey, limit: 10 })).map(({ text }) => text);
  return { worker, conversation, run, posting, shown };
}

describeEachDatabase('a message that a tool sends', (open) => {
  it('stores no tool message once its run was asked to stop, and finds a stored one again', async () => {
    const { worker, conversation, posting, shown } = await aSpeaker(open());
    const before = await open().write(storeToolParts, posting('1', 'first'));
    await worker.accept(aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false }));
    expect(await open().write(storeToolParts, posting('1', 'first'))).toEqual(before);
    // A file that was sent may have been deleted since: the call is repeated without it.
    expect(await open().write(storeToolParts, posting('1'))).toEqual(before);
    const isPosted = (callId: string) => open().read(readIsPosted, posting(callId));
    expect([await isPosted('1'), await isPosted('2')]).toEqual([true, false]);
    await expect(open().write(storeToolParts, posting('2', 'second'))).rejects.toThrow('asked to stop');
    expect(await shown()).not.toContain('second');
  });

  it('stores no tool message once its run has ended', async () => {
    const { run, posting, shown } = await aSpeaker(open());
    await endWithout(open(), run, 'timeout');
    await expect(open().write(storeToolParts, posting('1', 'late'))).rejects.toThrow('has ended');
    expect(await shown()).not.toContain('late');
  });

  it("reports the state of a tool message's worst part and the number of parts sent", async () => {
    const { posting } = await aSpeaker(open());
    const results: SendOutcome[] = [
      { kind: 'sent', receipts: [] },
      { kind: 'failed', failure: { kind: 'rejected' }, reason: 'not allowed here' },
    ];
    const deliver = async (conversationKey: string) => {
      const courier = aCourier(open(), conversationKey);
      for (const result of results) await courier.deliver(result);
      sender.settled();
    };
    let delivering = Promise.resolve();
    const sender = createToolSender({
      store: open(),
      clock: systemClock,
      deliver: (key) => {
        delivering = deliver(key);
      },
    });
    const end = await sender.send(posting('1', 'one', 'two', 'three'), new AbortController().signal);
    expect(end).toMatchObject({ state: 'failed', problem: 'not allowed here', sentParts: 1 });
    await delivering;
  });
});
