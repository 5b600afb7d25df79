import { expect, it } from 'vitest';
import { plainText } from '../../../src/contracts/formatted-text.ts';
import { type MessageId, partKey } from '../../../src/contracts/ids.ts';
import { adoptPreview, readUnknownPreview, recordPreview } from '../../../src/store/delivery/preview.ts';
import { readPartStates } from '../../../src/store/delivery/tool-send.ts';
import { handOver } from '../../../src/store/lanes/leases.ts';
import { readPreview } from '../../../src/store/lanes/recover-run.ts';
import { aConversation } from '../a-conversation.ts';
import { aRoute, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('a preview', (open) => {
  /** Returns a run whose preview is being sent. */
  const aPreview = async () => {
    const talk = aConversation(open());
    const run = await talk.begin('hi');
    const { runId, laneKey, epoch } = run;
    const key = partKey(`${runId}:preview:${epoch}.0`);
    const content = { kind: 'text', text: plainText('half an answer') } as const;
    const part = { key, route: aRoute(talk.conversation), content };
    expect(await open().write(recordPreview, { kind: 'sending', key, runId, part })).toBe(true);
    const shown = { key, laneKey, epoch };
    const standing = () => open().read(readPreview, { runId });
    const stateOf = async (of: string) => (await open().read(readPartStates, { keys: [of] }))[0]?.state;
    return { ...talk, run, part, shown, standing, stateOf };
  };

  it("doesn't delete a preview that is recorded late, after an answer has taken it over", async () => {
    const { run, shown, answer, claimRun, deliver, say, claimNext } = await aPreview();
    const record = () => open().write(recordPreview, { kind: 'sent', ...shown, messageId: '7' });
    await record();
    await answer(run, 'the answer', { preview: shown.key });
    await deliver();
    await say('again');
    expect((await claimRun()).epoch).toBeGreaterThan(shown.epoch);
    await record();
    expect(await claimNext()).toEqual({ kind: 'empty' });
  });

  it('keeps a preview for the next holder of the run, however late it is recorded again', async () => {
    const { run, shown, standing, claimRun } = await aPreview();
    const record = () => open().write(recordPreview, { kind: 'sent', ...shown, messageId: '7' });
    await record();
    await open().write(handOver, run);
    expect((await claimRun()).epoch).toBeGreaterThan(shown.epoch);
    await record();
    expect(await standing()).toEqual({ key: shown.key, messageId: '7' });
  });

  it("doesn't delete a preview that an answer took over before it was recorded", async () => {
    const { run, shown, answer, claimRun, deliver, say, claimNext } = await aPreview();
    await answer(run, 'the answer', { preview: shown.key });
    await deliver();
    await say('again');
    await claimRun();
    await open().write(recordPreview, { kind: 'sent', ...shown, messageId: '7' });
    expect(await claimNext()).toEqual({ kind: 'empty' });
  });

  it('reads a preview as unknown until it is recorded', async () => {
    const { run, part, shown } = await aPreview();
    const unknown = () => open().read(readUnknownPreview, { runId: run.runId });
    expect(await unknown()).toEqual({ part, since: expect.any(Number) });
    await open().write(recordPreview, { kind: 'sent', ...shown, messageId: '7' });
    expect(await unknown()).toBeUndefined();
  });

  it('adopts a found preview once', async () => {
    const { shown, standing } = await aPreview();
    const found = { ...shown, messageIds: ['7', '8'] };
    const expected = { key: shown.key, messageId: '7' };
    expect(await open().write(adoptPreview, found)).toEqual(expected);
    expect(await standing()).toEqual(expected);
    expect(await open().write(adoptPreview, { ...found, messageIds: ['8'] })).toBeUndefined();
    expect(await standing()).toEqual(expected);
  });

  it("doesn't adopt a message as the preview that another part has sent", async () => {
    const { run, shown, answer, deliver, standing } = await aPreview();
    const other = unique('sent') as MessageId;
    await answer(run, 'said before');
    await deliver({ kind: 'sent', receipts: [other] });
    expect(await open().write(adoptPreview, { ...shown, messageIds: [other] })).toBeUndefined();
    expect(await standing()).toBeUndefined();
  });

  it("fails a preview that wasn't found", async () => {
    const { run, shown, stateOf } = await aPreview();
    expect(await open().write(adoptPreview, { ...shown, messageIds: [] })).toBeUndefined();
    expect(await stateOf(shown.key)).toBe('failed');
    expect(await open().read(readUnknownPreview, { runId: run.runId })).toBeUndefined();
  });

  it('deletes the preview if another process owns the run when the preview is found', async () => {
    const { run, shown, claimRun, claimPart, standing } = await aPreview();
    await open().write(handOver, run);
    await claimRun();
    expect(await open().write(adoptPreview, { ...shown, messageIds: ['7'] })).toBeUndefined();
    expect(await standing()).toBeUndefined();
    expect((await claimPart()).part.content).toEqual({ kind: 'delete', messageId: '7' });
  });
});
