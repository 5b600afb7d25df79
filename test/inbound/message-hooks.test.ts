import { expect, it } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { InboundEvent } from '#contracts/envelope.ts';
import type { HookName } from '#contracts/hook.ts';
import { messageId } from '#contracts/ids.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { silentLog } from '../support/silent-log.ts';
import { anAccount, anEnvelope, createIntakeFixture, refOf } from './support/intake-fixture.ts';

describeEachDatabase('hooks about received messages', (open) => {
  let owner = anAccount('alpha');
  const town = (on: Partial<Record<HookName, (event: never) => unknown>>) => {
    const hooks = createHooks({ log: silentLog, clock: systemClock });
    for (const [name, handler] of Object.entries(on))
      hooks.on(name as HookName, handler as never, { owner: 'test' });
    owner = anAccount('alpha');
    const config = { owners: [refOf(owner)], dmScope: 'per-channel-peer' } as const;
    return createIntakeFixture(open(), { config, access: { dmPolicy: 'allowlist' }, hooks });
  };

  it('shows message_received a message whose sender has access, and no other', async () => {
    const seen: unknown[] = [];
    const { send } = town({ message_received: (event) => void seen.push(event) });
    await send(owner, 'hello');
    await send(anAccount('alpha'), 'let me in');
    expect(seen).toMatchObject([{ text: 'hello', chat: 'dm', agentId: 'main', sender: { id: owner.peer } }]);
  });

  it('stores the words of message_received in place of the sender’s, which never become a command', async () => {
    const { send, laneOf, worker } = town({ message_received: () => ({ kind: 'rewrite', text: '/new' }) });
    const lane = laneOf(await send(owner, 'my card is 4111'));
    await worker.claim(lane);
    const { told } = await readLane(open(), lane);
    expect(JSON.stringify(told)).toContain('/new');
    expect(JSON.stringify(told)).not.toContain('4111');
  });

  it('shows message_received the words of an edit, too', async () => {
    const { send, accept, laneOf, worker } = town({
      message_received: ({ text }: { text: string }) => ({
        kind: 'rewrite',
        text: text.replace('4111', '***'),
      }),
    });
    const first = anEnvelope(owner, 'no secret');
    const [accepted] = await accept(owner, [first]);
    if (first.event.kind !== 'message' || accepted === undefined) throw new Error('not accepted');
    const { messageId: id } = first.event;
    const edit: InboundEvent = { ...first.event, kind: 'edit', messageId: messageId(id), text: 'it is 4111' };
    await send(owner, edit);
    const lane = laneOf(accepted);
    await worker.claim(lane);
    expect(JSON.stringify((await readLane(open(), lane)).told)).toContain('it is ***');
  });

  it.each([
    ['drops', { kind: 'drop', reason: 'spam' }, 'dropped-by-hook'],
    ['claims', { kind: 'claim' }, 'claimed-by-hook'],
  ])('keeps a message from the agent if message_received %s it', async (_, decision, reason) => {
    const { send } = town({ message_received: () => decision });
    expect(await send(owner, 'buy now')).toEqual({ kind: 'ignored', reason });
  });

  it('accepts a message although message_received fails', async () => {
    const { send } = town({ message_received: () => Promise.reject(new Error('no')) });
    expect(await send(owner, 'hello')).toMatchObject({ kind: 'accepted' });
  });

  it('tells hooks about a command and a reset before they take effect, and only if they may', async () => {
    const seen: unknown[] = [];
    const note = (event: { command: string }) => void seen.push(event.command);
    const { send } = town({ 'command:new': note, 'command:whoami': note, before_reset: note } as never);
    await send(owner, '/new');
    await send(owner, '/whoami');
    await send(owner, '/new and more');
    expect(seen).toEqual(['new', 'new', 'whoami']);
  });
});
