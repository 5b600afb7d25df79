import { expect, it, onTestFinished } from 'vitest';
import { openClientConnection } from '#channel-kit/client-connection.ts';
import { systemClock } from '#channel-kit/system-clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import { terminalRoute } from '../../channels/terminal/ids.ts';
import { inboundEnvelope } from '../../channels/terminal/inbound.ts';
import { patienceMs } from '../support/patience.ts';
import { createSessionDouble, type SessionDouble } from '../support/session-double.ts';
import { silentLog } from '../support/silent-log.ts';

it('reads again without an event, in case that one was lost', async () => {
  const { session, frames } = aConnection({ lookMs: 5 });
  await expect.poll(() => frames.length, { timeout: patienceMs }).toBeGreaterThan(1);
  session.say(terminalRoute('main'), { text: 'said unheard' });
  await expect.poll(() => frames.join(), { timeout: patienceMs }).toContain('said unheard');
});

it('keeps a client connected while the store is unavailable', async () => {
  const session = createSessionDouble();
  let isAway = true;
  let isReading = false;
  const { frames } = aConnection({
    lookMs: 5,
    session: {
      ...session,
      timeline: {
        ...session.timeline,
        read: async (...asked) => {
          const items = await session.timeline.read(...asked);
          isReading = true;
          return items;
        },
        standing: async () => {
          // Only the periodic look fails: a read that has started succeeds.
          if (isAway && !isReading) throw new ParleyError('store_unavailable', 'The store is away.');
          isReading = false;
          return {};
        },
      },
    },
  });
  const stands = '{"type":"event","event":{"kind":"changed"}}';
  await expect.poll(() => frames, { timeout: patienceMs }).toContain(stands);
  session.say(terminalRoute('main'), { text: 'said meanwhile' });
  isAway = false;
  await expect.poll(() => frames.join(), { timeout: patienceMs }).toContain('said meanwhile');
});

it('follows its conversation to another session as soon as something is sent there', async () => {
  const { session, frames, say } = aConnection({});
  await expect.poll(() => frames.length, { timeout: patienceMs }).toBeGreaterThan(1);
  session.sessionName = 'another session';
  say(JSON.stringify({ type: 'stop', id: crypto.randomUUID() }));
  await expect.poll(() => frames.join(), { timeout: patienceMs }).toContain('"of":"another session"');
});

it('pauses a client that sends faster than the store, and resumes it afterwards', async () => {
  const session = createSessionDouble();
  const store = Promise.withResolvers<void>();
  const accept: typeof session.intake.accept = async (...batch) => {
    await store.promise;
    return session.intake.accept(...batch);
  };
  const { frames, say, pauses } = aConnection({
    session: { ...session, intake: { ...session.intake, accept } },
  });
  await expect.poll(() => frames.length, { timeout: patienceMs }).toBeGreaterThan(1);
  for (let sent = 0; sent < 100; sent++) say(JSON.stringify({ type: 'stop', id: crypto.randomUUID() }));
  expect(pauses).toEqual([true]);
  store.resolve();
  const acks = () => frames.filter((frame) => frame.includes('"ack"')).length;
  await expect.poll(acks, { timeout: patienceMs }).toBe(100);
  await expect.poll(() => pauses, { timeout: patienceMs }).toEqual([true, false]);
});

function aConnection({
  lookMs,
  session = createSessionDouble(),
}: {
  lookMs?: number;
  session?: SessionDouble;
}) {
  const frames: string[] = [];
  const pauses: boolean[] = [];
  let say = (_text: string): void => undefined;
  const connection = openClientConnection({
    ...{ routeTo: terminalRoute, envelopeOf: inboundEnvelope, onStale: () => undefined },
    ...{ intake: session.intake, clock: systemClock, log: silentLog },
    ...(lookMs !== undefined && { lookMs }),
    timeline: { ...session.timeline, watch: () => undefined },
    link: {
      send: (text) => frames.push(text),
      close: () => undefined,
      onText: (listener) => {
        say = listener;
      },
      onClose: () => undefined,
      setPaused: (isPaused) => pauses.push(isPaused),
    },
  });
  onTestFinished(connection.close);
  say('{"type":"hello"}');
  return { session, frames, pauses, say };
}
