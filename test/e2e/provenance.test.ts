/** Orders inside somebody else's words, passed on by an owner to a gateway that runs (threat 19). */
import { test } from 'vitest';
import { readStore, untilAtRest } from './conservation.ts';
import { ada, bob, eve, said, startTelegramGateway, untilSaid } from './telegram-gateway.ts';

test('a forwarded /link joins nobody, a forwarded /activation switches no group, and the same words typed say whom they join', {
  timeout: 300_000,
}, async ({ expect, onTestFinished }) => {
  const config = { owners: ['telegram:501'], access: { dmPolicy: 'open', groupPolicy: 'open' } };
  const { telegram, model, dataDir } = await startTelegramGateway({ config }, onTestFinished);
  const group = telegram.world.addSupergroup('Plans').chat.id;
  const forwarded = (from: object) => ({ forward_origin: { type: 'user', sender_user: from, date: 1 } });

  telegram.userSends({ from: eve, text: '/link' });
  const shown = await untilSaid(telegram, { chat: eve.id, text: /\/link [A-Z2-9]{8}/ });
  const [order = '', code] = /\/link ([A-Z2-9]{8})/.exec(shown.text) ?? [];

  telegram.userSends({ from: ada, text: order, fields: forwarded(eve) });
  await untilSaid(telegram, { chat: ada.id, text: /^You said: / });
  telegram.userSends({ from: ada, text: order });
  await untilSaid(telegram, { chat: ada.id, text: new RegExp(`telegram:666 “Eve”.*/link confirm ${code}$`) });
  telegram.userSends({ from: ada, text: 'The secret is plum.' });
  await untilSaid(telegram, { chat: ada.id, text: 'You said: The secret is plum.' });
  telegram.userSends({ from: eve, text: 'What did Ada say?' });
  await untilSaid(telegram, { chat: eve.id, text: 'You said: What did Ada say?' });
  expect(JSON.stringify(model.requests.at(-1)?.body)).not.toContain('plum');
  expect(readStore(dataDir, 'select peer from links')).toEqual([]);

  telegram.userSends({ chat: group, from: ada, text: '/activation always', fields: forwarded(bob) });
  telegram.userSends({ chat: group, from: bob, text: 'Nobody is called here.' });
  await untilAtRest(dataDir, 7);
  expect(said(telegram, group)).toEqual([]);
  // The control: her own word switches it.
  telegram.userSends({ chat: group, from: ada, text: '/activation always' });
  await untilSaid(telegram, { chat: group, text: 'I now answer every message here.' });
});
