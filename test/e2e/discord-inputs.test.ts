/** Messages that used to vanish or to lose their content, through a running gateway to the model. */

import { beforeAll, test } from 'vitest';
import { textShown, type WireBody } from '../platforms/anthropic/wire.ts';
import { mention } from '../platforms/discord/people.ts';
import type { DiscordUser, Wire } from '../platforms/discord/types.ts';
import type { ChannelState } from '../platforms/discord/world.ts';
import { onePixel } from '../support/one-pixel.ts';
import { imagesIn, readAfter as readModelAfter } from './asking.ts';
import { findBreaches } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { type DiscordSide, discordOf } from './discord-side.ts';
import { openStage, type Stage } from './stage.ts';

const alert = {
  type: 'rich',
  title: 'Disk alert',
  description: 'Disk /data is 97 % full',
  fields: [{ name: 'host', value: 'db-3' }],
};
const alertText = '[Embed] Disk alert\nDisk /data is 97 % full\nhost: db-3';

describeRow('on Discord', (atEnd) => {
  let stage: Stage;
  let discord: DiscordSide;
  let garden: ChannelState;
  let ada: DiscordUser;
  let bob: DiscordUser;

  beforeAll(async () => {
    stage = await openStage({ networks: ['discord'] }, atEnd);
    discord = discordOf(stage);
    [ada, bob] = [discord.user(501), discord.user(502)];
    const guild = discord.server.world.addGuild('Team', ada);
    discord.server.world.addMember(guild, bob);
    garden = discord.server.world.addChannel(guild, 'garden');
    stage.model.script((_body, count) => ({ text: `Answer ${count}.` }));
    await stage.start();
  });

  const readAfter = (act: () => unknown) => readModelAfter(stage, act);
  const asks = (text: string, more: { readonly channel?: ChannelState } = {}) => ({
    from: ada,
    channel: garden,
    text: `${mention(discord.server.bot)} ${text}`,
    ...more,
  });
  const picture = () =>
    discord.server.world.addFile({ name: 'p.png', mimeType: 'image/png', bytes: onePixel });

  test('answers a message whose nonce is null', async ({ expect }) => {
    const { people } = discord.server;
    const body = await readAfter(() => people.sends({ from: ada, text: 'hello', fields: { nonce: null } }));
    expect(textShown(body)).toContain('hello');
  });

  test('shows the model a forward that contains only a card as data', async ({ expect }) => {
    const body = await readAfter(() => discord.server.people.sends(forwardOf({ embeds: [alert] })));
    expect(textShown(body)).toMatch(/<<<untrusted [^>]*>>>/);
    expect(textShown(body)).toContain(alertText);
  });

  test('shows the model the picture in a forward', async ({ expect }) => {
    const { people, platform, world } = discord.server;
    const attachments = [platform.render.attachment(world.dmWith(ada).id, picture())];
    const body = await readAfter(() => people.sends(forwardOf({ attachments })));
    expect(imagesIn(body)).toBe(1);
  });

  test('shows the model the card that a question quotes', async ({ expect }) => {
    const { people, world } = discord.server;
    const card = world.add(garden, { author: bob, fields: { embeds: [alert] } });
    const body = await readAfter(() => people.sends({ ...asks('what is this?'), replyTo: card }));
    expect(textShown(body)).toMatch(/quote from Person 502/);
    expect(textShown(body)).toContain(alertText);
  });

  test('shows the model the picture that a question quotes', async ({ expect }) => {
    const { people, world } = discord.server;
    const shown = world.add(garden, { author: bob, files: [picture()] });
    const before = imagesIn(stage.model.requests.at(-1)?.body ?? noBody);
    const body = await readAfter(() => people.sends({ ...asks('what is in it?'), replyTo: shown }));
    expect(imagesIn(body)).toBe(before + 1);
  });

  test('adds pictures posted before the message that mentions the bot, but no deleted ones', async ({
    expect,
  }) => {
    const { people } = discord.server;
    const before = imagesIn(stage.model.requests.at(-1)?.body ?? noBody);
    people.sends({ from: bob, channel: garden, text: '', files: [picture()] });
    people.deletes(people.sends({ from: bob, channel: garden, text: '', files: [picture()] }));
    const body = await readAfter(() => people.sends(asks('what did Bob post?')));
    expect(imagesIn(body)).toBe(before + 1);
    expect(textShown(body)).toContain('The files below came with an earlier message by Person 502;');
  });

  test('shows the model the message that a thread starts from', async ({ expect }) => {
    const { people, places } = discord.server;
    const report = people.sends({
      from: bob,
      channel: garden,
      text: 'The login page returns 502 since noon',
    });
    const thread = places.startsThread({ parent: garden, name: 'login page', owner: bob, on: report });
    const body = await readAfter(() => people.sends(asks('please take a look', { channel: thread })));
    expect(textShown(body)).toContain('The login page returns 502 since noon');
    expect(textShown(body)).toContain('please take a look');
    expect(findBreaches(stage.dataDir)).toEqual([]);
    expect([discord.server.refusals, discord.server.pings]).toEqual([[], []]);
  });

  function forwardOf(snapshot: Wire) {
    const message_snapshots = [
      { message: { type: 0, content: '', embeds: [], attachments: [], ...snapshot } },
    ];
    const message_reference = { type: 1, channel_id: '1', message_id: '2' };
    return { from: ada, text: '', fields: { flags: 1 << 14, message_reference, message_snapshots } };
  }
});

const noBody: WireBody = { messages: [], model: '', max_tokens: 1 };
