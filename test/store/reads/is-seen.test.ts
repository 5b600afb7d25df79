import { expect, it } from 'vitest';
import { readIsSeen } from '../../../src/store/reads/own-messages.ts';
import { aLane, aMessage, aWorker, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';

describeEachDatabase('a message that an answer names', (open) => {
  it('counts a message as seen if its session took it or had it as context in the conversation', async () => {
    const { accept, claimRun, answer } = aWorker(open());
    const [conversation, elsewhere] = [unique('c'), unique('c')];
    const group = { lane: aLane(conversation, { chatKind: 'group' }), conversation };
    const said = (text: string) => `${text} in ${conversation}`;
    await accept(
      aMessage({ conversation: elsewhere, text: 'secret', messageId: 'theirs' }),
      aMessage({ ...group, text: 'overheard', messageId: said('context'), item: { passesGate: false } }),
      aMessage({ ...group, text: 'hello', messageId: said('first') }),
    );
    await claimRun(aLane(elsewhere).key);
    await answer(await claimRun(group.lane.key), 'hi');
    await accept(aMessage({ ...group, text: 'and now?', messageId: said('second') }));
    const run = await claimRun(group.lane.key);
    await accept(aMessage({ ...group, text: 'later', messageId: said('waiting') }));
    const isSeen = (messageId: string) => open().read(readIsSeen, { run, messageId });
    for (const seen of ['context', 'first', 'second']) expect(await isSeen(said(seen)), seen).toBe(true);
    const hostile = ["' or 1=1 --", '%', '_', '../theirs', `${elsewhere}/theirs`, '\u0000', 'current'];
    for (const unseen of [said('waiting'), 'theirs', ...hostile])
      expect(await isSeen(unseen), unseen).toBe(false);
    const onRecord = { ...run, target: 'record' } as const;
    expect(await open().read(readIsSeen, { run: onRecord, messageId: said('second') })).toBe(false);
  });
});
