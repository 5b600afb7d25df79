import { expect, it } from 'vitest';
import type { MessageId } from '../../../src/contracts/ids.ts';
import { skipped } from '../../../src/contracts/message.ts';
import type { OutboundContent } from '../../../src/contracts/outbound.ts';
import type { Store, Tx } from '../../../src/store/base/command.ts';
import { commitToolTurn, storeToolResults } from '../../../src/store/lanes/commit-turn.ts';
import { readTimeline } from '../../../src/store/reads/read-timeline.ts';
import { aConversation } from '../a-conversation.ts';
import { endWithout, routeFor, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

const messageId = 'platform-1' as MessageId;
const text = (value: string): OutboundContent => ({ kind: 'text', text: { text: value, spans: [] } });
const edit = (value: string): OutboundContent => ({
  kind: 'edit',
  messageId,
  text: { text: value, spans: [] },
});
const removal: OutboundContent = { kind: 'delete', messageId };
const reaction: OutboundContent = { kind: 'reaction', messageId, emoji: '👍' };

/** Returns a conversation in which one message was sent and answered with these parts. */
async function aTimeline(store: Store, contents: readonly OutboundContent[]) {
  const { laneKey, worker, saying, begin, answer } = aConversation(store);
  const run = await begin('question');
  const route = routeFor(run);
  await answer(run, 'said', { parts: contents.map((content) => ({ route, content, purpose: 'reply' })) });
  const say = (said: string) => worker.accept(saying(said));
  const read = (limit: number, after?: number) =>
    store.read(readTimeline, { laneKey, limit, ...(after === undefined ? {} : { after }) });
  const texts = async (limit: number, after?: number) => (await read(limit, after)).map((item) => item.text);
  /** Returns the pages that a client gets from `after` on, until one isn't full. */
  const pagesAfter = async (after: number, limit: number) => {
    const pages: string[][] = [];
    for (let at = after; ; ) {
      const page = await read(limit, at);
      pages.push(page.map((item) => item.text));
      if (page.length < limit) return pages;
      at = page.at(-1)?.position ?? at;
    }
  };
  return { say, read, texts, pagesAfter };
}

describeEachDatabase('the timeline of a session', (open) => {
  it('starts the timeline with the newest items, oldest first', async () => {
    const timeline = await aTimeline(open(), [text('answer')]);
    await timeline.say('thanks');
    expect(await timeline.texts(10)).toEqual(['question', 'answer', 'thanks']);
    expect(await timeline.texts(2)).toEqual(['answer', 'thanks']);
  });

  it('shows a command before its answer, and pages over both', async () => {
    const asked = { messageId: 'm', name: 'you', text: '/status' };
    const answer = { ...text('All is well.'), asked } as OutboundContent;
    const timeline = await aTimeline(open(), [answer]);
    await timeline.say('thanks');
    expect(await timeline.texts(10)).toEqual(['question', '/status', 'All is well.', 'thanks']);
    expect(await timeline.pagesAfter(0, 2)).toEqual([['question', '/status', 'All is well.'], ['thanks']]);
    expect((await timeline.read(10))[1]).toMatchObject({ messageId: 'm', state: 'command' });
  });

  it('shows the file of a part with its caption, and its name on one line', async () => {
    const caption = { text: 'the chart', spans: [{ kind: 'bold', start: 4, length: 5 }] } as const;
    const file = { kind: 'media', path: 'sent-1.01234567', mimeType: 'image/png' } as const;
    const parts = [text('answer'), { ...file, name: 'a.png', caption }, { ...file, name: 'b\n\u202e.png' }];
    const [, , first, second] = await (await aTimeline(open(), parts)).read(10);
    const shown = { mimeType: 'image/png', stored: 'sent-1.01234567' };
    expect(first).toMatchObject({ author: { kind: 'agent' }, ...caption, file: { ...shown, name: 'a.png' } });
    expect(second).toMatchObject({ text: '', file: { ...shown, name: 'b .png' } });
    expect(second).not.toHaveProperty('spans');
  });

  it('shows an answer as the model wrote it if that differs from its text', async () => {
    const { laneKey, begin, answer } = aConversation(open());
    await answer(await begin('question'), '**bold**', { parts: [] });
    const run = await begin('again');
    const part = { route: routeFor(run), content: text('bold'), purpose: 'reply' } as const;
    await answer(run, '**bold**', { parts: [part] });
    const items = await open().read(readTimeline, { laneKey, limit: 10 });
    expect(items.map(({ text, markdown }) => [text, markdown])).toEqual([
      ['question', undefined],
      ['again', undefined],
      ['bold', '**bold**'],
    ]);
  });

  it('says why the run of a failed message failed, and nothing about other messages', async () => {
    const { laneKey, begin, answer } = aConversation(open());
    await answer(await begin('fine'), 'answer');
    await endWithout(open(), await begin('refused'), 'model_error', { detail: 'HTTP 400: no such model' });
    const items = await open().read(readTimeline, { laneKey, limit: 10 });
    expect(items.map(({ text, state, reason }) => [text, state, reason])).toEqual([
      ['fine', 'delivering', undefined],
      ['answer', 'pending', undefined],
      ['refused', 'failed', 'HTTP 400: no such model'],
    ]);
  });

  it('shows a message as answered once its answer has been delivered', async () => {
    const { laneKey, begin, answer, deliver } = aConversation(open());
    await answer(await begin('question'), 'answer');
    const states = async () =>
      (await open().read(readTimeline, { laneKey, limit: 10 })).map(({ text, state }) => [text, state]);
    expect(await states()).toEqual([
      ['question', 'delivering'],
      ['answer', 'pending'],
    ]);
    await deliver();
    expect(await states()).toEqual([
      ['question', 'answered'],
      ['answer', 'sent'],
    ]);
  });

  it('ends before rows stored during the read, so that a client continues without a gap', async () => {
    const store = open();
    const { laneKey, say, begin, answer } = aConversation(store);
    const run = await begin('question');
    // Between the queries for messages and for answers, one of each is stored.
    const meanwhile = async () => {
      await say('one more');
      await answer(run, 'answer');
    };
    const request = { laneKey, limit: 10 };
    const first = await store.read(
      { query: 'torn', run: (tx) => readTimeline.run(pausing(tx, 'outbox', meanwhile), request) },
      {},
    );
    const after = first.at(-1)?.position ?? 0;
    const next = await store.read(readTimeline, { ...request, after });
    expect([...first, ...next].map((item) => item.text)).toEqual(['question', 'one more', 'answer']);
  });

  it('continues with the oldest items after a position', async () => {
    const timeline = await aTimeline(open(), [text('one'), text('two'), text('three')]);
    const [first] = await timeline.read(10);
    expect(await timeline.texts(2, first?.position)).toEqual(['one', 'two']);
    expect(await timeline.texts(2, 0)).toEqual(['question', 'one']);
  });

  it('leaves no gap for a client that missed several pages', async () => {
    const timeline = await aTimeline(open(), [text('one'), text('two'), text('three')]);
    for (const said of ['four', 'five', 'six']) await timeline.say(said);
    expect(await timeline.pagesAfter(0, 2)).toEqual([
      ['question', 'one'],
      ['two', 'three'],
      ['four', 'five'],
      ['six'],
    ]);
  });

  it('lists an answer that took over a preview, but no deletions or reactions', async () => {
    const timeline = await aTimeline(open(), [reaction, edit('answer'), removal, text('more')]);
    const items = await timeline.read(10);
    expect(items.map((item) => [item.author.kind, item.text])).toEqual([
      ['person', 'question'],
      ['agent', 'answer'],
      ['agent', 'more'],
    ]);
  });

  it('distinguishes a tool call skipped for a steer from a failed one', async () => {
    const { laneKey, begin, answer } = aConversation(open());
    const run = await begin('question');
    const { epoch, runId, sessionId } = run;
    const texts = ['fine', 'no such file', skipped];
    const message = { id: unique('turn'), sessionId, model: 'test', parts: [] };
    const calls = texts.map((content) => ({ callId: content, name: 'act', input: '{}' }));
    await open().write(commitToolTurn, { laneKey, epoch, runId, message, calls });
    const results = texts.map((content) => {
      const data = { tool_call_id: content, name: 'act', content, is_error: content !== 'fine' };
      return { callId: content, isError: data.is_error, parts: [{ type: 'tool_result', data }] as const };
    });
    await open().write(storeToolResults, { laneKey, epoch, runId, messageId: message.id, results });
    await answer(run, 'answer');
    const steps = (await open().read(readTimeline, { laneKey, limit: 10 })).at(-1)?.steps;
    expect(steps?.map(({ state }) => state)).toEqual(['done', 'failed', 'skipped']);
  });

  it("fills a page by skipping the parts that it doesn't list", async () => {
    const timeline = await aTimeline(open(), [removal, removal, reaction, text('one'), text('two')]);
    const [first] = await timeline.read(10);
    expect(await timeline.texts(2, first?.position)).toEqual(['one', 'two']);
    expect(await timeline.pagesAfter(0, 2)).toEqual([['question', 'one'], ['two']]);
    const backwards = await aTimeline(open(), [text('one'), removal, removal, reaction]);
    expect(await backwards.texts(2)).toEqual(['question', 'one']);
  });
});

/** Returns the same transaction, but each query for the table first awaits something else. */
function pausing(tx: Tx, table: string, before: () => Promise<void>): Tx {
  const slow = (builder: object): object =>
    new Proxy(builder, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        return (...given: readonly unknown[]) => {
          if (name === 'execute') return before().then(() => Reflect.apply(member, target, given));
          const next: unknown = Reflect.apply(member, target, given);
          const isOther = name === 'selectFrom' && given[0] !== table;
          return typeof next === 'object' && next !== null && !isOther ? slow(next) : next;
        };
      },
    });
  // The proxy has the shape of the original.
  return { ...tx, db: slow(tx.db) as Tx['db'] };
}
