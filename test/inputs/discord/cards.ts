/** Embeds, which programs and Discord make, and components. */
import { bot, botUser, cdn, type DiscordInput, type Fields, posted, proxied, ref } from './discord-input.ts';

type Read = Omit<NonNullable<DiscordInput['read']>, 'event'>;

function input(name: string, shape: string, fields: Fields, read: Read): DiscordInput {
  return { name, shape, dispatch: posted(fields), read: { event: 'message', ...read } };
}

/** A message that consists of these embeds. */
const card = (name: string, shape: string, embeds: readonly unknown[], read: Read) =>
  input(name, shape, { embeds }, read);

const api = 'discord-api-docs, Embed Object';
const alert = {
  type: 'rich',
  title: 'Disk alert',
  description: 'Disk /data is 97 % full',
  fields: [{ name: 'host', value: 'db-3', inline: true }],
};
const alertLines = ['[Embed] Disk alert', 'Disk /data is 97 % full', 'host: db-3'];

const embeds: readonly DiscordInput[] = [
  card('a card without words', 'claude-plugins-official #1572', [alert], { described: alertLines }),
  input(
    'a card of a webhook',
    'hermes-agent pull request 26738',
    {
      embeds: [alert],
      webhook_id: '1111111111111111113',
      author: { id: '1111111111111111113', username: 'Alarm', bot: true },
    },
    { described: alertLines, origin: 'automated' },
  ),
  card(
    'a card with everything',
    api,
    [
      {
        ...{ type: 'rich', title: 'Release 2', url: 'https://example.org/r/2', color: 5814783, flags: 0 },
        author: { name: 'CI', url: 'https://example.org/ci', icon_url: 'https://example.org/i.png' },
        provider: { name: 'Builds', url: null },
        description: 'All is green',
        timestamp: '2026-11-27T10:00:00Z',
        footer: { text: 'run 7', icon_url: null },
        image: { url: 'https://example.org/big.png', proxy_url: `${proxied}/big.png`, width: 9, height: 9 },
        thumbnail: { url: 'https://example.org/small.png', proxy_url: `${proxied}/small.png` },
        fields: [],
      },
    ],
    {
      described: [
        ...['[Embed] Builds: Release 2', 'CI', 'All is green', 'run 7', '2026-11-27T10:00:00Z'],
        ...[
          'Link: https://example.org/r/2',
          'Author: https://example.org/ci',
          'Picture: https://example.org/big.png',
        ],
      ],
      media: [`image ${ref(`${proxied}/big.png`)}`, `image ${ref(`${proxied}/small.png`)}`],
    },
  ),
  card(
    'a card of a picture alone',
    'purple-discord #347',
    [{ type: 'rich', image: { url: 'https://example.org/a.jpeg', proxy_url: `${proxied}/a.jpeg` } }],
    {
      described: ['[Embed]', 'Picture: https://example.org/a.jpeg'],
      media: [`image ${ref(`${proxied}/a.jpeg`)}`],
    },
  ),
  card(
    'a card with a picture on another server, of which Discord has no copy',
    api,
    [{ type: 'rich', title: 'Plot', image: { url: 'https://example.org/plot.png' } }],
    { described: ['[Embed] Plot', 'Picture: https://example.org/plot.png'] },
  ),
  card(
    'a card with an uploaded picture',
    'discord-api-docs, Using Attachments within Embeds',
    [{ type: 'rich', image: { url: `${cdn}/1/plot.png`, proxy_url: null, content_type: 'image/png' } }],
    { described: ['[Embed]', `Picture: ${cdn}/1/plot.png`], media: [`image ${ref(`${cdn}/1/plot.png`)}`] },
  ),
  card(
    'a card whose optional fields are null',
    api,
    [
      {
        ...{ type: null, title: 'Only a title', description: null, url: null, timestamp: null, footer: null },
        ...{
          author: null,
          provider: null,
          image: null,
          thumbnail: null,
          video: null,
          fields: null,
          color: null,
        },
      },
    ],
    { described: ['[Embed] Only a title'] },
  ),
  card('a card without a word', 'webhook-discord #23', [{ type: 'rich', color: 5814783 }], {
    unknown: ['embeds'],
  }),
  card('a card of new fields alone', api, [{ type: 'rich', hologram: { size: 3 } }], {
    unknown: ['embeds.hologram', 'embeds'],
  }),
  card(
    'two cards, of which the first cannot be read',
    api,
    [
      'x',
      {
        type: 'rich',
        title: 'Second',
        fields: [null, { name: 'a', value: null }, { name: null, value: 'b' }],
      },
    ],
    { described: ['[Embed] Second', 'a', 'b'] },
  ),
  card(
    'a card that names people',
    api,
    [{ type: 'rich', description: `<@${bot.id}> and <#1200000000000000002>` }],
    {
      described: ['[Embed]', '@parley and #general'],
    },
  ),
  input(
    'a link with the preview of its page',
    'discord-api-docs, Embed Types, article',
    {
      content: 'https://example.org/news',
      embeds: [
        {
          ...{ type: 'article', url: 'https://example.org/news', title: 'Rain', description: 'It rains.' },
          provider: { name: 'The Daily' },
          thumbnail: { url: 'https://example.org/t.png', proxy_url: `${proxied}/t.png`, width: 1, height: 1 },
        },
      ],
    },
    {
      text: 'https://example.org/news',
      described: [
        ...['[Link preview] The Daily: Rain', 'It rains.', 'Link: https://example.org/news'],
        'Picture: https://example.org/t.png',
      ],
    },
  ),
  input(
    'a link to a video',
    'discord-api-docs, Embed Types, video',
    {
      content: 'https://example.org/v',
      embeds: [
        {
          ...{ type: 'video', url: 'https://example.org/v', title: 'Cat', provider: { name: 'Tube' } },
          author: { name: 'Bea', url: 'https://example.org/bea' },
          video: { url: 'https://example.org/embed/v', width: 1280, height: 720 },
        },
      ],
    },
    {
      text: 'https://example.org/v',
      described: [
        ...[
          '[Link preview] Tube: Cat',
          'Bea',
          'Link: https://example.org/v',
          'Author: https://example.org/bea',
        ],
        'Video: https://example.org/embed/v',
      ],
    },
  ),
  input(
    'an animation of a GIF service',
    'discord-api-docs, Embed Types, gifv',
    {
      content: 'https://example.org/gif',
      embeds: [
        {
          ...{ type: 'gifv', url: 'https://example.org/gif', provider: { name: 'Gifs' } },
          thumbnail: { url: 'https://example.org/gif.png', proxy_url: `${proxied}/gif.png` },
          video: { url: 'https://example.org/gif.mp4', proxy_url: `${proxied}/gif.mp4` },
        },
      ],
    },
    {
      text: 'https://example.org/gif',
      described: [
        ...['[Link preview] Gifs', 'Link: https://example.org/gif', 'Picture: https://example.org/gif.png'],
        'Video: https://example.org/gif.mp4',
      ],
      media: [`image ${ref(`${proxied}/gif.png`)}`],
    },
  ),
  input(
    'a link to a picture',
    'discord-api-docs, Embed Types, image',
    {
      content: 'https://example.org/a.png',
      embeds: [
        {
          ...{ type: 'image', url: 'https://example.org/a.png' },
          thumbnail: { url: 'https://example.org/a.png', proxy_url: `${proxied}/a.png`, width: 5, height: 5 },
        },
      ],
    },
    {
      text: 'https://example.org/a.png',
      described: ['[Link preview]', 'Link: https://example.org/a.png', 'Picture: https://example.org/a.png'],
      media: [`image ${ref(`${proxied}/a.png`)}`],
    },
  ),
];

const parts = 'discord-api-docs, Component Reference';
const v2 = { flags: 1 << 15 };
const pictures = Array.from({ length: 20 }, (_, index) => `${proxied}/${index}.png`);
const gallery = (from: number) => ({
  type: 12,
  items: pictures.slice(from, from + 10).map((proxy_url, index) => ({
    media: { url: `https://example.org/${from + index}.png`, proxy_url },
  })),
});

const components: readonly DiscordInput[] = [
  input(
    'buttons below a text',
    parts,
    {
      content: 'Ready?',
      components: [
        {
          type: 1,
          id: 1,
          components: [
            { type: 2, id: 2, style: 3, custom_id: 'y', label: 'Yes', emoji: { id: null, name: '✅' } },
            { type: 2, id: 3, style: 5, url: 'https://example.org/help', label: 'Help' },
            { type: 2, id: 4, style: 4, custom_id: 'n', emoji: { id: '5', name: 'no' }, disabled: true },
          ],
        },
      ],
    },
    { text: 'Ready?', described: ['[✅ Yes]', '[Help] (https://example.org/help)', '[no]'] },
  ),
  input(
    'a menu',
    'discord-api-docs, String Select',
    {
      components: [
        {
          type: 1,
          components: [
            {
              ...{ type: 3, custom_id: 'm', placeholder: 'Choose a class', min_values: 1, max_values: 1 },
              options: [
                { label: 'Rogue', value: 'r', description: 'Sneaks', emoji: { id: '5', name: 'r' } },
                { label: 'Mage', value: 'm' },
              ],
            },
          ],
        },
      ],
    },
    { described: ['[Choose a class]', 'Options: Rogue: Sneaks · Mage'] },
  ),
  input(
    'words in a component of the top level',
    'discord-api-docs pull request 8493',
    { ...v2, components: [{ type: 10, id: 1, content: '# Report\nall is well' }] },
    { described: ['# Report\nall is well'] },
  ),
  input(
    'a container with everything',
    'discord-api-docs #8611',
    {
      ...v2,
      components: [
        {
          ...{ type: 17, id: 1, accent_color: 703487, spoiler: false },
          components: [
            { type: 10, id: 2, content: 'A coyote has been sighted' },
            { type: 14, id: 3, divider: true, spacing: 1 },
            {
              ...{ type: 9, id: 4, components: [{ type: 10, id: 5, content: 'Where?' }] },
              accessory: {
                ...{ type: 11, id: 6, description: 'A map' },
                media: {
                  url: 'https://example.org/m.png',
                  proxy_url: `${proxied}/m.png`,
                  content_type: 'image/png',
                },
              },
            },
            {
              ...{ type: 12, id: 7 },
              items: [
                {
                  media: {
                    url: 'https://example.org/g.png',
                    proxy_url: `${proxied}/g.png`,
                    loading_state: 2,
                  },
                  description: 'At the river',
                },
              ],
            },
            {
              ...{ type: 13, id: 8, name: 'plan.pdf', size: 5 },
              file: {
                url: `${cdn}/1/plan.pdf?ex=1`,
                attachment_id: '1455000000000000001',
                content_type: 'application/pdf',
              },
            },
          ],
        },
      ],
    },
    {
      described: [
        ...['A coyote has been sighted', 'Where?', '[A map]', 'File: https://example.org/m.png'],
        ...['At the river', 'File: https://example.org/g.png'],
      ],
      media: [
        `image ${ref(`${proxied}/m.png`)}`,
        `image ${ref(`${proxied}/g.png`)}`,
        `file ${ref(`${cdn}/1/plan.pdf?ex=1`, '1455000000000000001')}`,
      ],
    },
  ),
  input(
    'two galleries of more pictures than are fetched',
    'discord-api-docs, Media Gallery',
    {
      ...v2,
      components: [gallery(0), gallery(10)],
    },
    {
      described: pictures.map((_, index) => `File: https://example.org/${index}.png`),
      media: pictures.map((url) => `image ${ref(url)}`),
    },
  ),
  input(
    'words in a component that mention the bot',
    parts,
    { ...v2, components: [{ type: 10, content: `<@${bot.id}> look` }], mentions: [botUser] },
    { described: ['@parley look'], callsBot: true },
  ),
  input(
    'a component of a kind that nobody knows yet',
    'discord-api-docs, Component Reference, a later kind',
    {
      ...v2,
      components: [{ type: 99, label: 'Rating', components: [{ type: 98, content: 'four of five' }] }],
    },
    { described: ['[Rating]', 'four of five'] },
  ),
  input(
    'a button that sells something, without a label',
    'nyxx #208; discord-api-docs, Button Styles, premium',
    { components: [{ type: 1, components: [{ type: 2, style: 6, sku_id: '1088510058284990888' }] }] },
    { unknown: ['components'] },
  ),
  input(
    'a component that is no object',
    parts,
    { components: ['x', 7, [], null] },
    { unknown: ['components'] },
  ),
];

export const cards: readonly DiscordInput[] = [...embeds, ...components];
