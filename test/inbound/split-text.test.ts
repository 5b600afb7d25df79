import { expect, it } from 'vitest';
import type { InboundEvent } from '../../src/contracts/envelope.ts';
import { messageId } from '../../src/contracts/ids.ts';
import { emptyMessage } from '../../src/inbound/stored-content.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { anAccount, anEnvelope, createIntakeFixture, refOf } from './support/intake-fixture.ts';

describeEachDatabase('the rest of a text split by a client', (open) => {
  const owner = anAccount('alpha');
  const long: InboundEvent = {
    ...emptyMessage,
    messageId: messageId('first'),
    text: 'pasted '.repeat(600),
    mayContinue: true,
  };
  const town = () => createIntakeFixture(open(), { config: { owners: [refOf(owner)] } });

  it('never takes the rest of a split text for a command, in the same batch or the next', async () => {
    const { send, accept } = town();
    const [first, rest] = [anEnvelope(owner, long), anEnvelope(owner, '/whoami')];
    expect(await accept(owner, [first, rest])).toEqual([
      expect.objectContaining({ kind: 'accepted' }),
      expect.objectContaining({ kind: 'accepted' }),
    ]);
    await send(owner, { ...long, messageId: messageId('second') });
    expect((await send(owner, '/whoami')).kind).toBe('accepted');
  });

  it('carries out a command that comes later, or from another sender, than the rest of a split text', async () => {
    const { send } = town();
    const sentAt = Date.now() - 60_000;
    await send(owner, { ...long, messageId: messageId('third') }, { sentAt });
    expect(await send(anAccount('alpha'), '/whoami')).toMatchObject({ kind: 'command' });
    expect(await send(owner, '/whoami')).toEqual({ kind: 'command', command: 'whoami' });
  });
});
