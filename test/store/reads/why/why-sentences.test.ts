import { expect, it } from 'vitest';
import { renderTrace } from '../../../../src/cli/render-trace.ts';
import { plainText } from '../../../../src/contracts/formatted-text.ts';
import { type MessageId, partKey } from '../../../../src/contracts/ids.ts';
import { recordPreview } from '../../../../src/store/delivery/preview.ts';
import { commitToolTurn, markToolStarted } from '../../../../src/store/lanes/commit-turn.ts';
import { handOver } from '../../../../src/store/lanes/leases.ts';
import { parkRun } from '../../../../src/store/lanes/park-run.ts';
import { callIdOf } from '../../../../src/store/money/model-call.ts';
import { readWhy } from '../../../../src/store/reads/why/read-why.ts';
import { aConversation } from '../../a-conversation.ts';
import { aRoute, endWithout, unique } from '../../builders.ts';
import { describeEachDatabase } from '../../each-database.ts';

const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`;

describeEachDatabase('the trace of a message', (open, { sql }) => {
  const storyOf = async (id: string): Promise<readonly string[]> => {
    const found = await open().read(readWhy, { id, withExcerpts: false });
    if (found.kind !== 'account') throw new Error(`${id} is ${found.kind}`);
    return renderTrace(found.account).split('\n');
  };
  /** Returns the lines of the id's story that start like this, without their times. */
  const linesOf = async (id: string, start: string): Promise<readonly string[]> =>
    (await storyOf(id))
      .map((line) => line.replace(/^(?:\d\S+ [\d:]+|now) +/, ''))
      .filter((line) => line.startsWith(start));

  /** Returns how the id's messages ended. */
  const endsOf = async (id: string): Promise<readonly string[]> =>
    (await linesOf(id, 'message ')).filter((line) => line.includes(' ended: '));

  it('says what a waiting message waits for', async () => {
    const { say, claimRun } = aConversation(open(), { settings: { mode: 'followup' } });
    const [one, two, three, four] = ['one', 'two', 'three', 'four'].map((name) => unique(name)) as [
      string,
      string,
      string,
      string,
    ];
    await say('hi', { messageId: one });
    expect(await linesOf(one, `message ${one} has`)).toEqual([
      expect.stringMatching(
        new RegExp(`^message ${one} has been due since ${time}; the next free worker will take it$`),
      ),
    ]);
    const { runId } = await claimRun();
    expect(await linesOf(one, `message ${one} is`)).toEqual([
      `message ${one} is being answered by run ${runId}`,
    ]);
    await say('hi', { messageId: two });
    await say('hi', { messageId: three });
    expect(await linesOf(two, `message ${two} is`)).toEqual([
      `message ${two} is waiting behind run ${runId}, which is still open`,
    ]);
    expect(await linesOf(three, `message ${three} is`)).toEqual([
      `message ${three} is waiting behind 1 message and run ${runId}, which is still open`,
    ]);
    const content = { text: 'look', prompt: 'look', sender: { id: 'ann', name: 'ann' }, sentAt: 1 };
    const attachments = [{ kind: 'image', ref: 'photo' }] as const;
    await say('look', { messageId: four, item: { content: { ...content, attachments } } });
    expect((await linesOf(four, `message ${four} is`))[0]).toMatch(
      /is waiting for its files, until \S+ [\d:]+ at the latest, behind 2 messages and run .*, which is still open$/,
    );
  });

  it('says that a message is with a parked run, and which message waits for that run', async () => {
    const { say, begin } = aConversation(open());
    const [asked, behind] = [unique('m'), unique('m')];
    const run = await begin('hi', { messageId: asked });
    const held = { laneKey: run.laneKey, epoch: run.epoch, runId: run.runId };
    const message = { id: unique('turn'), sessionId: run.sessionId, model: 'test', parts: [] };
    await open().write(commitToolTurn, {
      ...held,
      message,
      calls: [{ callId: '1', name: 'ask', input: '{}' }],
    });
    await open().write(markToolStarted, { ...held, messageId: message.id, callId: '1' });
    await open().write(parkRun, { ...held, reason: 'an approval', workedMs: 1, waitMs: 3_600_000 });
    await say('and?', { messageId: behind });
    const { runId } = run;
    expect(await linesOf(asked, 'message')).toContain(
      `message ${asked} is with run ${runId}, which is waiting for an approval`,
    );
    expect(await linesOf(asked, `run ${runId} `)).toEqual([
      expect.stringMatching(/ began in lane /),
      `run ${runId} was parked, waiting for an approval`,
      `run ${runId} is still parked`,
    ]);
    expect((await linesOf(behind, `message ${behind} is`))[0]).toMatch(
      new RegExp(`is waiting behind run ${runId}, which has been waiting for an approval since ${time}$`),
    );
  });

  it('says that a message is with a run that was handed over', async () => {
    const { begin } = aConversation(open());
    const messageId = unique('m');
    const run = await begin('hi', { messageId });
    await open().write(handOver, run);
    expect(await linesOf(messageId, `message ${messageId} is`)).toEqual([
      `message ${messageId} is with run ${run.runId}, which is waiting for a worker`,
    ]);
  });

  it('says once that a run was cancelled, and that its cost is a bound', async () => {
    const { begin } = aConversation(open());
    const messageId = unique('m');
    const run = await begin('hi', { messageId });
    const lost = {
      id: callIdOf(run.epoch, 1),
      latencyMs: 5,
      end: { state: 'unknown' },
      bound: 1500,
    } as const;
    await sql(`update runs set "cancelReason" = 'stop' where id = '${run.runId}'`);
    await endWithout(open(), run, 'stop', { modelCalls: [lost] });
    expect(await linesOf(messageId, `run ${run.runId} was`)).toEqual([
      `run ${run.runId} was cancelled (stop)`,
    ]);
    expect((await storyOf(messageId)).slice(-2)).toEqual([
      `message ${messageId} ended: cancelled (stop)`,
      'cost: at most $0.001500 in 1 model call',
    ]);
    expect(await linesOf(messageId, 'model ')).toEqual([
      expect.stringMatching(/: broke off before its usage was known: at most \$0\.001500, \d+ ms$/),
    ]);
  });

  it('names the message that a merged one was answered with, and the parts of the answer', async () => {
    const { say, claimRun, answer, deliver } = aConversation(open(), { settings: { mode: 'collect' } });
    const [first, last] = [unique('m'), unique('m')];
    for (const messageId of [first, last]) await say('hi', { messageId });
    const run = await claimRun();
    await answer(run, 'hello');
    await deliver({ kind: 'sent', receipts: [unique('sent') as MessageId] });
    expect(await endsOf(first)).toEqual([
      `message ${first} ended: merged into run ${run.runId}, with message ${last}`,
      `message ${last} ended: answered with ${run.runId}:1`,
    ]);
  });

  it('says how to send an answer again that may not have arrived', async () => {
    const { begin, answer, deliver } = aConversation(open());
    const messageId = unique('m');
    const run = await begin('hi', { messageId });
    await answer(run, 'hello');
    await deliver({ kind: 'unknown', reason: 'cut off' });
    expect([...(await endsOf(messageId)), (await storyOf(messageId)).at(-1)]).toEqual([
      `message ${messageId} ended: answered (delivery unknown) with ${run.runId}:1`,
      expect.stringMatching(
        new RegExp(`^to send it again \\(it may then arrive twice\\): .+ outbox retry ${run.runId}:1$`),
      ),
    ]);
    expect(await linesOf(messageId, 'reply ')).toEqual([
      expect.stringMatching(/: unknown \(cut off\): it may or may not have arrived$/),
    ]);
  });

  it('says in words why a message was refused', async () => {
    const { say } = aConversation(open(), { settings: { cap: 1, drop: 'new' } });
    const [kept, refused] = [unique('m'), unique('m')];
    await say('one', { messageId: kept });
    await say('two', { messageId: refused });
    expect(await linesOf(refused, 'event ')).toEqual([
      `event message:${refused} reached test/bot: refused (queue-full): too many messages were waiting`,
    ]);
  });

  it('says what became of a preview, even of one that may remain beside its answer', async () => {
    const { begin, answer, conversation } = aConversation(open());
    const run = await begin('hi');
    const { runId, laneKey, epoch } = run;
    const content = { kind: 'text', text: plainText('half') } as const;
    const keys = [0, 1, 2].map((count) => partKey(`${runId}:preview:${epoch}.${count}`));
    for (const key of keys) {
      const part = { key, route: aRoute(conversation), content };
      await open().write(recordPreview, { kind: 'sending', key, runId, part });
    }
    const [lost = '', shown = '', refused = ''] = keys;
    await open().write(recordPreview, { kind: 'sent', key: shown, messageId: '7', laneKey, epoch });
    await open().write(recordPreview, { kind: 'lost', key: refused, problem: 'no rights' });
    const states = async () =>
      (await linesOf(runId, 'preview ')).map((line) => line.slice(line.indexOf(': ') + 2));
    expect((await states()).toSorted()).toEqual([
      'failed (no rights)',
      'sent as 7, shown while the answer is written',
      'unknown: it may remain in the chat next to the answer',
    ]);
    await answer(run, 'hello', { preview: shown });
    expect((await states()).toSorted()[1]).toBe('sent as 7; later replaced or removed by its answer');
    expect(await storyOf(lost)).toContainEqual(expect.stringContaining(`preview ${lost} to `));
  });
});
