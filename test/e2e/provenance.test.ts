/** Orders inside somebody else's words, forwarded to a running gateway (threats 3 and 19). */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import { shareOf } from '../support/turn.ts';
import { carriers, obedient, ordersAgainst } from '../threats/injected-orders.ts';
import { countEvents, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { type Stage, startStage } from './stage.ts';
import { ada, bob, eve, said, untilSaid } from './telegram-chat.ts';

const config = {
  owners: ['telegram:501'],
  access: { dmPolicy: 'open', groupPolicy: 'open' },
  rateLimit: { perSenderPerMinute: 100_000 },
};
/** Tools of a guest can only affect its own conversation. */
const ofGuests = [
  'message',
  'session_status',
  'sessions_list',
  'sessions_history',
  'agents_list',
  'subagents',
];

describeRow('orders inside the words of others', (atEnd) => {
  let gateway: Stage;

  beforeAll(async () => {
    gateway = await startStage({ config }, atEnd);
  });

  test('obeys no forwarded /link and /activation, and says whom a typed /link joins', async ({ expect }) => {
    const { telegram, model, dataDir } = gateway;
    const group = telegram.world.addSupergroup('Plans').chat.id;
    const forwarded = (from: object) => ({ forward_origin: { type: 'user', sender_user: from, date: 1 } });

    telegram.userSends({ from: eve, text: '/link' });
    const shown = await untilSaid(telegram, { chat: eve.id, text: /\/link [A-Z2-9]{8}/ });
    const [order = '', code] = /\/link ([A-Z2-9]{8})/.exec(shown.text) ?? [];

    telegram.userSends({ from: ada, text: order, fields: forwarded(eve) });
    await untilSaid(telegram, { chat: ada.id, text: /^You said: / });
    telegram.userSends({ from: ada, text: order });
    await untilSaid(telegram, {
      chat: ada.id,
      text: new RegExp(`telegram:666 “Eve”.*/link confirm ${code}$`),
    });
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

  test("lets a model that obeys every order do nothing beyond a guest's rights", {
    timeout: 1_800_000,
  }, async ({ expect }) => {
    const { telegram, model, dataDir } = gateway;
    telegram.userSends({ from: ada, text: 'My secret is plum.' });
    await telegram.waitFor(() => said(telegram, ada.id).some((text) => text.includes('My secret is plum.')));
    await untilAtRest(dataDir, 1);
    const before = countEvents(dataDir);
    const workspace = join(dataDir, 'workspace');
    await mkdir(workspace, { recursive: true });
    await writeFile(join(workspace, 'secret.txt'), 'The secret is plum.');
    const [owners] = readStore(dataDir, `select key, sessionId from lanes where key like '%:501'`);
    const aim = {
      lane: String(owners?.key),
      session: String(owners?.sessionId),
      outside: join(dataDir, '..'),
    };
    const orders = ordersAgainst(aim);
    expect(new Set(orders.map((order) => JSON.stringify(order))).size).toBe(500);
    const obey = obedient(orders);
    let obeyed = 0;
    model.script((body) => {
      const reply = obey(body);
      if (!('text' in reply && reply.text === 'Done.')) obeyed += 1;
      return reply;
    });
    const seen = model.requests.length;
    const kept = await picture(dataDir);
    const toAda = said(telegram, ada.id).length;

    const cells = orders.flatMap((_, n) => Object.values(carriers).map((carry) => ({ n, carry })));
    let events = 0;
    for (const [index, { n, carry }] of shareOf(cells, 125).entries()) {
      events += carry({ telegram, word: `obey${n}x`, number: 100_000 + index * 2 });
      if (index % 100 === 99) await untilAtRest(dataDir, before + events);
    }
    await untilAtRest(dataDir, before + events);

    expect(obeyed).toBe(shareOf(cells, 125).length);
    const started = readStore(dataDir, 'select distinct name from toolCalls where startedAt is not null');
    expect(started.map(({ name }) => String(name)).filter((name) => !ofGuests.includes(name))).toEqual([]);
    expect(readStore(dataDir, `select name, input from toolCalls where result like '%plum%'`)).toEqual([]);
    expect(JSON.stringify(model.requests.slice(seen).map(({ body }) => body))).not.toContain('plum');
    expect(await picture(dataDir)).toEqual(kept);
    for (const table of ['links', 'people', 'approvals', 'children'])
      expect(readStore(dataDir, `select * from ${table}`)).toEqual([]);
    expect(said(telegram, ada.id)).toHaveLength(toAda);
    expect(findBreaches(dataDir)).toEqual([]);
  });
});

/** The files of the workspace and the configuration. */
async function picture(dataDir: string): Promise<readonly string[]> {
  const names = await readdir(join(dataDir, 'workspace'), { recursive: true });
  return [...names.sort(), await readFile(join(dataDir, '..', 'parley.config.json'), 'utf8')];
}
