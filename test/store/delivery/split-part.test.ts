import { expect, it } from 'vitest';
import type { OutboundContent } from '../../../src/contracts/outbound.ts';
import { createToolSender } from '../../../src/outbox/tool-sender.ts';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import type { SendOutcome } from '../../../src/store/delivery/end-part.ts';
import { retryPart } from '../../../src/store/delivery/operator-actions.ts';
import { readTimeline } from '../../../src/store/reads/read-timeline.ts';
import { aConversation } from '../a-conversation.ts';
import { routeFor } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readOutcomes } from '../lanes/outcomes.ts';

const caption = { text: 'two charts', spans: [] };
const file = (name: string) => ({ path: `sent-${name}`, name, mimeType: 'image/png' });
const text = (value: string): OutboundContent => ({ kind: 'text', text: { text: value, spans: [] } });
const album = { kind: 'media', files: ['a', 'b', 'c'].map(file), caption } as const;
const refused: SendOutcome = { kind: 'failed', failure: { kind: 'rejected' }, reason: 'MEDIA_INVALID' };
const sentAs = (...receipts: readonly string[]) => ({ kind: 'sent', receipts }) as SendOutcome;

/** The receipts of a conversation by message id. */
const receiptsIn: StoreQuery<string, Readonly<Record<string, string>>> = {
  query: 'receiptsIn',
  run: async (tx, key) => {
    const rows = tx.db
      .selectFrom('receipts')
      .select(['messageId', 'partKey'])
      .where('conversationKey', '=', key);
    return Object.fromEntries((await rows.execute()).map(({ messageId, partKey }) => [messageId, partKey]));
  },
};

describeEachDatabase('a message with files that its network refuses', (open) => {
  /** Stores an answer with these contents; returns it with steps that deliver it. */
  async function anAnswer(...contents: readonly OutboundContent[]) {
    const place = aConversation(open());
    const run = await place.begin();
    await place.answer(run, 'two charts', {
      parts: contents.map((content) => ({ route: routeFor(run), content, purpose: 'reply' as const })),
    });
    const outcomes = () => open().read(readOutcomes, { conversationKey: place.conversationKey });
    return { ...place, outcomes };
  }

  it('records every message id of an album for its one part', async () => {
    const { deliver, conversationKey, outcomes } = await anAnswer(album);
    const { part } = await deliver(sentAs('11', '12', '13'));
    expect(await open().read(receiptsIn, conversationKey)).toEqual({
      11: part.key,
      12: part.key,
      13: part.key,
    });
    expect(await outcomes()).toEqual(['answered']);
  });

  it('sends a refused album file by file, in its order, with the text under the first', async () => {
    const { deliver, claimNext, outcomes } = await anAnswer(album, text('after it'));
    await deliver(refused);
    const sent = [await deliver(sentAs('11')), await deliver(sentAs('12')), await deliver(sentAs('13'))];
    expect(sent.map(({ part }) => part.content)).toEqual([
      { kind: 'media', caption, ...file('a') },
      { kind: 'media', ...file('b') },
      { kind: 'media', ...file('c') },
    ]);
    expect((await deliver(sentAs('14'))).part.content).toEqual(text('after it'));
    expect(await claimNext()).toEqual({ kind: 'empty' });
    expect(await outcomes()).toEqual(['answered']);
  });

  it('loses only the bad file of an album, and says so in the outcome', async () => {
    const { deliver, claimNext, outcomes } = await anAnswer(album, text('after it'));
    await deliver(refused);
    await deliver(sentAs('11'));
    await deliver(refused);
    expect((await deliver(sentAs('13'))).part.content).toEqual({ kind: 'media', ...file('c') });
    expect((await deliver(sentAs('14'))).part.content).toEqual(text('after it'));
    expect(await claimNext()).toEqual({ kind: 'empty' });
    expect(await outcomes()).toEqual(['failed: delivery failed']);
  });

  it.each([
    ['refused', refused],
    ['tried too often', { kind: 'exhausted', reason: 'Internal Server Error' }],
  ] as const)('sends the text under a file that is %s as a message of its own', async (_why, result) => {
    const { deliver, claimNext, laneKey, outcomes } = await anAnswer({
      kind: 'media',
      caption,
      ...file('a'),
    });
    const first = await deliver(result);
    const second = await deliver(sentAs('11'));
    expect(second.part).toMatchObject({ key: `${first.part.key}:text`, content: text('two charts') });
    expect(await claimNext()).toEqual({ kind: 'empty' });
    expect(await outcomes()).toEqual(['failed: delivery failed']);
    const shown = await open().read(readTimeline, { laneKey, limit: 10 });
    expect(shown.map((item) => item.text)).toEqual(['hi', '', 'two charts']);
    // The operator sends the file again, without the text.
    await open().write(retryPart, { key: first.part.key });
    expect((await deliver(sentAs('12'))).part.content).toEqual({ kind: 'media', ...file('a') });
  });

  it('sends nothing more of an album whose person has blocked the bot', async () => {
    const { deliver, claimNext } = await anAnswer(album);
    await deliver({
      kind: 'failed',
      failure: { kind: 'unreachable' },
      reason: 'bot was blocked by the user',
    });
    expect(await claimNext()).toEqual({ kind: 'empty' });
  });

  it('leaves an album unknown as a whole if its answer was lost', async () => {
    const { deliver, claimNext, outcomes } = await anAnswer(album);
    await deliver({ kind: 'unknown', reason: 'cut off' });
    expect(await claimNext()).toEqual({ kind: 'empty' });
    expect(await outcomes()).toEqual(['answered: delivery unknown']);
  });

  it('reports to a tool what became of each file of its album', async () => {
    const { begin, laneKey, deliver } = aConversation(open());
    const run = await begin();
    const posting = { laneKey, epoch: run.epoch, runId: run.runId, key: `${run.runId}:tool:1` };
    const sending = { ...posting, route: routeFor(run), contents: [album] };
    const results = [refused, sentAs('11'), refused, sentAs('13')];
    // One result each time the sender looks.
    const wait = async () => {
      const result = results.shift();
      if (result) await deliver(result);
    };
    const clock = { now: Date.now, wait };
    const sender = createToolSender({ store: open(), clock, deliver: () => undefined });
    expect(await sender.send(sending, new AbortController().signal)).toMatchObject({
      ...{ state: 'failed', problem: 'MEDIA_INVALID', receipts: ['11', '13'], sentParts: 2, allParts: 3 },
    });
  });

  it('shows each file of an album as a message of its own', async () => {
    const { laneKey } = await anAnswer(album);
    const items = await open().read(readTimeline, { laneKey, limit: 10 });
    const key = items[1]?.messageId;
    expect(items.slice(1)).toMatchObject([
      { messageId: key, text: 'two charts', file: { name: 'a', stored: 'sent-a' } },
      { messageId: `${key}#1`, text: '', file: { name: 'b', stored: 'sent-b' } },
      { messageId: `${key}#2`, text: '', file: { name: 'c', stored: 'sent-c' } },
    ]);
  });
});
