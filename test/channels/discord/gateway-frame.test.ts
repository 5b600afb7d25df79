/** Threat 18 at the gateway: a frame is read or ignored and never causes a throw; no number exceeds its bounds. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readFrame, readGatewayUrl } from '../../../channels/discord/gateway-frame.ts';
import { readHistoric } from '../../../channels/discord/inbound.ts';
import { budget, holds } from '../../support/holds.ts';
import { aGuild, aMessage, aScene, general } from './payloads.ts';

const counts = budget(1_000_000);

const awkward = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom('', '0', -1, 0, 1e300, '1e300', null, '\u0000', '\ud800', '9'.repeat(20), '__proto__'),
  // It can't be converted to a string.
  fc.constant({ toString: '' }),
);

/** Produces objects that are well formed in most of their fields and odd in some. */
function oddly(good: Readonly<Record<string, unknown>>, also: readonly string[] = []) {
  const keys = [...Object.keys(good), ...also, 'constructor', '__proto__'];
  const odd = fc.dictionary(fc.constantFrom(...keys), awkward, { maxKeys: 4 });
  return fc.oneof(
    awkward,
    odd.map((fields) => ({ ...good, ...fields })),
  );
}

const prototypes = () => Object.getOwnPropertyNames(Object.prototype).join();

it('reads or skips any frame and keeps every number within bounds', { timeout: 1_200_000 }, () => {
  const before = prototypes();
  const message = aMessage({ message_reference: { message_id: '1' }, attachments: [], flags: 0 });
  const ready = {
    session_id: 's',
    user: { id: '1', username: 'x' },
    guilds: [],
    resume_gateway_url: 'wss://x',
  };
  const body = fc.oneof(
    oddly(message, ['referenced_message', 'member', 'webhook_id', 'sticker_items', 'poll']),
    oddly(aGuild()),
    oddly(ready),
    oddly({ heartbeat_interval: 41_250 }),
    oddly({ id: '5', type: 2, token: 't', channel_id: general, user: ready.user, data: { name: 'stop' } }),
    oddly({
      ids: ['1'],
      channel_id: general,
      guild_id: '',
      user_id: '1',
      message_id: '1',
      emoji: { name: 'x' },
    }),
  );
  const names = ['READY', 'RESUMED', 'GUILD_CREATE', 'MESSAGE_CREATE', 'MESSAGE_UPDATE', 'MESSAGE_DELETE'];
  const event = fc.oneof(
    fc.constantFrom(...names, 'MESSAGE_DELETE_BULK', 'MESSAGE_REACTION_ADD', 'INTERACTION_CREATE'),
    awkward,
  );
  const op = fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.constantFrom(1, 7, 9, 10, 11), awkward);
  const scene = aScene();
  const property = fc.property(op, event, awkward, body, (...[code, t, s, d]) => {
    const frame = readFrame(JSON.stringify({ op: code, t, s, d }));
    if (frame?.op === 10) {
      expect(frame.d.heartbeat_interval).toBeGreaterThanOrEqual(1000);
      expect(frame.d.heartbeat_interval).toBeLessThanOrEqual(120_000);
    }
    if (frame?.op !== 0) return;
    expect(Number.isSafeInteger(frame.s) && frame.s >= 0).toBe(true);
    if (frame.t === 'READY') {
      const { resume_gateway_url: resumeUrl } = frame.d as Readonly<Record<string, unknown>>;
      expect(resumeUrl).toBe(readGatewayUrl(resumeUrl));
    }
    scene.directory.apply(frame.t, frame.d);
    const reading = scene.read(frame.t, frame.d, frame.s);
    if (reading.kind === 'events')
      for (const { sentAt } of reading.events) expect(Number.isSafeInteger(Math.floor(sentAt))).toBe(true);
    const place = scene.directory.placeOf(general);
    if (place !== undefined) readHistoric(frame.d, place, scene.around);
  });
  holds(property, counts);
  expect(prototypes()).toBe(before);
});
