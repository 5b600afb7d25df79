import { expect, it } from 'vitest';
import { readUndelivered, retryPart } from '../../../src/store/delivery/operator-actions.ts';
import { endPartsAfterRestore, readRestoreMark } from '../../../src/store/delivery/restore.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { openSignIn, readSignIns } from '../../../src/store/sign-ins/sign-ins.ts';
import { aTimeline } from '../../support/some-feed.ts';
import { aConversation, aCourier } from '../a-conversation.ts';
import { aRoute, holder, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readOutcomes } from '../lanes/outcomes.ts';

describeEachDatabase('a restore', (open, beside) => {
  const restore = () =>
    beside.sql(
      `insert into restores (id, "madeAt", "isActed") values ('${unique('restore')}', '2026-01-01T00:00:00Z', 0)`,
    );
  const anAnswer = async () => {
    const { conversation, conversationKey, begin, answer, claimNext, deliver } = aConversation(open());
    await answer(await begin(), `answer in ${conversation}`);
    return { conversationKey, claimNext, deliver };
  };

  it('marks waiting parts as unknown after a restore until the operator decides', async () => {
    await (await anAnswer()).deliver();
    const waiting = await anAnswer();
    expect(await open().write(endPartsAfterRestore, {})).toBeUndefined();
    await restore();
    expect(await open().write(endPartsAfterRestore, {})).toEqual({
      madeAt: '2026-01-01T00:00:00Z',
      parts: 1,
    });
    expect((await waiting.claimNext()).kind).not.toBe('part');
    expect(await open().read(readOutcomes, waiting)).toEqual(['answered: delivery unknown']);
    const [part] = await open().read(readUndelivered, { limit: 10 });
    expect(part).toMatchObject({ state: 'unknown', problem: expect.stringContaining('2026-01-01') });
    await open().write(retryPart, { key: part?.key ?? '' });
    expect(await open().write(endPartsAfterRestore, {})).toBeUndefined();
    expect((await waiting.claimNext()).kind).toBe('part');
  });

  it('gives earlier read positions another session after each restore', async () => {
    const sessionOf = async () => {
      const restoreMark = await open().read(readRestoreMark, {});
      return aTimeline(open(), () => 'lane', { restoreMark }).sessionOf(aRoute('c'));
    };
    const before = await sessionOf();
    await restore();
    const after = await sessionOf();
    expect(after).not.toBe(before);
    await open().write(endPartsAfterRestore, {});
    expect(await sessionOf()).toBe(after);
    await restore();
    expect([before, after]).not.toContain(await sessionOf());
    await open().write(endPartsAfterRestore, {});
  });

  it('signs every browser out after a restore, because one may have signed out since the backup', async () => {
    const at = 1_000_000;
    const signIn = {
      id: unique('id'),
      secretHash: unique('hash'),
      issuer: unique('issuer'),
      browser: 'Firefox',
    };
    await open().write(openSignIn, { ...signIn, at, expiresAt: at + 1 });
    const signedIn = async () => (await open().read(readSignIns, { issuer: signIn.issuer, at })).length;
    await open().write(endPartsAfterRestore, {});
    expect(await signedIn()).toBe(1);
    await restore();
    await open().write(endPartsAfterRestore, {});
    expect(await signedIn()).toBe(0);
  });

  it('looks up a part after a restore if it was being sent in the backup', async () => {
    const folder = unique('folder');
    await open().write(addProcess, { id: holder, folder });
    const { conversationKey, claimNext } = await anAnswer();
    expect(await claimNext()).toMatchObject({ step: 'send' });
    await restore();
    await open().write(endPartsAfterRestore, {});
    await open().write(addProcess, { id: unique('boot'), folder, sends: [{ holder, begun: [] }] });
    const next = aCourier(open(), conversationKey, { canLookUp: true });
    expect(await next.claimPart()).toMatchObject({ step: 'look-up' });
  });
});
