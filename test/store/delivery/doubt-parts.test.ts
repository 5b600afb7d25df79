import { expect, it } from 'vitest';
import { claimDelivery, recordDelivery } from '../../../src/store/delivery/claim-delivery.ts';
import { doubtParts } from '../../../src/store/delivery/doubt-parts.ts';
import { readUndelivered, retryPart } from '../../../src/store/delivery/operator-actions.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { openSignIn, readSignIns } from '../../../src/store/sign-ins/sign-ins.ts';
import { aLane, aMessage, aWorker, holder, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readOutcomes } from '../lanes/outcomes.ts';

const policy = { holder, leaseMs: 10_000, repeatSafeMs: 0, resendUnknown: false };

describeEachDatabase('after a restore', (open, beside) => {
  const restore = () => beside.sql(`insert into restores ("madeAt") values ('2026-01-01T00:00:00Z')`);
  const anAnswer = async () => {
    const worker = aWorker(open());
    const conversation = unique('c');
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    await worker.answer(await worker.claimRun(aLane(conversation).key), `answer in ${conversation}`);
    return `test/bot/${conversation}`;
  };
  const claim = (conversationKey: string) => open().write(claimDelivery, { ...policy, conversationKey });

  it('nothing that waits to be sent is sent by itself: the operator decides, and what was sent stays so', async () => {
    const sent = await anAnswer();
    const claimed = await claim(sent);
    if (claimed.kind !== 'part') throw new Error('nothing to deliver');
    await open().write(recordDelivery, {
      ...{ ...policy, conversationKey: sent, epoch: claimed.epoch, partKey: claimed.part.key },
      ...{ result: { kind: 'sent', receipts: [] }, claimsNext: false },
    });
    const waiting = await anAnswer();
    expect(await open().write(doubtParts, {})).toBeUndefined();
    await restore();
    expect(await open().write(doubtParts, {})).toEqual({ madeAt: '2026-01-01T00:00:00Z', parts: 1 });
    expect((await claim(waiting)).kind).not.toBe('part');
    expect(await open().read(readOutcomes, { conversationKey: waiting })).toEqual([
      'answered: delivery unknown',
    ]);
    const [part] = await open().read(readUndelivered, { limit: 10 });
    expect(part).toMatchObject({ state: 'unknown', problem: expect.stringContaining('2026-01-01') });
    await open().write(retryPart, { key: part?.key ?? '' });
    expect(await open().write(doubtParts, {})).toBeUndefined();
    expect((await claim(waiting)).kind).toBe('part');
  });

  it('no browser is signed in: it may have been signed out since the backup', async () => {
    const at = 1_000_000;
    const signIn = {
      id: unique('id'),
      secretHash: unique('hash'),
      issuer: unique('issuer'),
      browser: 'Firefox',
    };
    await open().write(openSignIn, { ...signIn, at, expiresAt: at + 1 });
    const signedIn = async () => (await open().read(readSignIns, { issuer: signIn.issuer, at })).length;
    await open().write(doubtParts, {});
    expect(await signedIn()).toBe(1);
    await restore();
    await open().write(doubtParts, {});
    expect(await signedIn()).toBe(0);
  });

  it('a part that was being sent is looked for, though its process has ended the call since the backup', async () => {
    const folder = unique('folder');
    await open().write(addProcess, { id: holder, folder });
    const conversationKey = await anAnswer();
    expect(await claim(conversationKey)).toMatchObject({ step: 'send' });
    await restore();
    await open().write(doubtParts, {});
    await open().write(addProcess, { id: unique('boot'), folder, sends: [{ holder, begun: [] }] });
    const next = { ...policy, canLookUp: true, conversationKey };
    expect(await open().write(claimDelivery, next)).toMatchObject({ step: 'look-up' });
  });
});
