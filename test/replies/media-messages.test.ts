import { expect, it } from 'vitest';
import type { Capabilities } from '#contracts/capabilities.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { filesOf, type OutboundMedia } from '#contracts/outbound.ts';
import { capabilities as discord } from '../../channels/discord/capabilities.ts';
import { capabilities as signal } from '../../channels/signal/capabilities.ts';
import { capabilities as telegram } from '../../channels/telegram/capabilities.ts';
import { clientCapabilities } from '../../src/channel-kit/client-channel.ts';
import { captioned, type FileToSend, mediaMessages } from '../../src/replies/media-messages.ts';
import { aReply, aToolSend, shapeReply } from './reply-builders.ts';

const types = {
  png: 'image/png',
  mp4: 'video/mp4',
  gif: 'image/gif',
  pdf: 'application/pdf',
  mp3: 'audio/mpeg',
  ogg: 'audio/ogg',
} as const;

function aFile(name: string, sizeBytes: number | undefined = 1000): FileToSend {
  const type = name.split('.')[1] as keyof typeof types;
  return { path: `sent-${name}`, name, mimeType: types[type], sizeBytes };
}

const files = (...names: readonly string[]) => names.map((name) => aFile(name));
const grouped = (sent: readonly FileToSend[], { media }: Capabilities) =>
  mediaMessages(sent, media).map((message) => filesOf(message).map(({ name }) => name));

it('puts photos and videos into one album, and songs and documents into their own', () => {
  const mixed = files('1.png', 'a.pdf', '2.mp4', '1.mp3', '3.png', '1.gif', 'b.pdf', '2.mp3');
  expect(grouped(mixed, telegram)).toEqual([
    ['1.png', '2.mp4', '3.png'],
    ['a.pdf', 'b.pdf'],
    ['1.mp3', '2.mp3'],
    ['1.gif'],
  ]);
  const large = { ...aFile('4.png'), sizeBytes: 11_000_000 };
  expect(grouped([...files('1.png', 'a.pdf'), large], telegram)).toEqual([['1.png'], ['a.pdf', '4.png']]);
});

it('splits an album at ten files, and sends a single one that is left alone', () => {
  const eleven = Array.from({ length: 11 }, (_, index) => aFile(`${index}.png`));
  for (const network of [telegram, discord, signal])
    expect(mediaMessages(eleven, network.media).map((message) => filesOf(message).length)).toEqual([10, 1]);
  expect(mediaMessages(eleven, telegram.media)[1]).not.toHaveProperty('files');
});

it('splits the files of a message at the size that the network allows for all of them', () => {
  const sizes = [6, 3, 2, 9, 1].map((mb, index) => ({ ...aFile(`${index}.pdf`), sizeBytes: mb * 1024 ** 2 }));
  expect(grouped(sizes, discord)).toEqual([['0.pdf', '1.pdf'], ['2.pdf'], ['3.pdf', '4.pdf']]);
});

it('sends each file alone where the network has no albums, or the size is not known', () => {
  const page = clientCapabilities({ canPress: true });
  expect(grouped(files('1.png', '2.png'), page)).toEqual([['1.png'], ['2.png']]);
  const old = files('1.png', '2.png').map(({ sizeBytes: _, ...file }) => file);
  expect(grouped(old, telegram)).toEqual([['1.png'], ['2.png']]);
});

it('sends a voice message alone, or as a file where there are none', () => {
  const voice = { ...aFile('v.ogg'), asVoice: true } as const;
  const [first, second] = mediaMessages([voice, aFile('a.pdf')], discord.media);
  expect([first?.asVoice, second?.asVoice]).toEqual([true, undefined]);
  expect(grouped([voice, aFile('a.pdf')], signal)).toEqual([['v.ogg', 'a.pdf']]);
  expect(mediaMessages([voice], signal.media)[0]).not.toHaveProperty('asVoice');
});

it('makes a single short text the caption of the first message with files, and loses no other', () => {
  const album = mediaMessages(files('1.png', '2.png', 'a.pdf'), telegram.media);
  const short = plainText('look');
  expect(captioned([short], album, telegram)).toEqual([{ ...album[0], caption: short }, album[1]]);
  const fits = plainText('x'.repeat(1024));
  expect(captioned([fits], album, telegram)).toHaveLength(2);
  for (const texts of [[short, short], [plainText('x'.repeat(1025))]])
    expect(captioned(texts, album, telegram)).toEqual([
      ...texts.map((text) => ({ kind: 'text', text })),
      ...album,
    ]);
});

it('sends the text beside a voice message where that has none', () => {
  const voice: OutboundMedia = { kind: 'media', ...aFile('v.ogg'), asVoice: true };
  const text = plainText('hello');
  expect(captioned([text], [voice], telegram)).toEqual([{ ...voice, caption: text }]);
  expect(captioned([text], [voice], discord)).toEqual([{ kind: 'text', text }, voice]);
});

it('measures a caption as the network will write it', () => {
  const escaped = plainText('*'.repeat(1500));
  const [file] = mediaMessages(files('a.pdf'), discord.media);
  expect(captioned([escaped], file ? [file] : [], discord)).toMatchObject([
    { kind: 'text' },
    { kind: 'media' },
  ]);
});

const media = files('1.png', '2.png').map((file) => ({ ...file, source: `/w/${file.name}` }));

it("sends an answer's short text as the caption of its album, quoting what it answers", () => {
  const reply = aReply({ text: 'Two charts', media, capabilities: telegram, replyToMode: 'first' });
  expect(shapeReply(reply)).toMatchObject({
    kind: 'send',
    parts: [
      {
        route: { replyTo: '41' },
        content: { kind: 'media', caption: { text: 'Two charts' }, files: [{}, {}] },
        purpose: 'reply',
      },
    ],
  });
});

it.each([
  ['that is too long', { text: 'x'.repeat(1025) }],
  ['of which blocks were sent', { isBegun: true }],
  ['that takes the place of a preview', { hasPreview: true }],
  ['to a client', { capabilities: clientCapabilities({ canPress: true }) }],
])('sends the text of an answer %s on its own', (_what, over) => {
  const plan = shapeReply(aReply({ text: 'Two charts', media, capabilities: telegram, ...over }));
  const kinds = plan.kind === 'send' ? plan.parts.map(({ content }) => content.kind) : [];
  expect([kinds[0], new Set(kinds.slice(1))]).toEqual(['text', new Set(['media'])]);
});

it('sends no caption that repeats what the message tool has sent, and only the files that it has not', () => {
  const toolSends = [aToolSend({ text: 'Two charts for you', media: ['/w/1.png'] })];
  const plan = shapeReply(aReply({ text: 'Two charts for you', media, toolSends, capabilities: telegram }));
  expect(plan).toMatchObject({ parts: [{ content: { kind: 'media', name: '2.png' } }] });
  expect(plan).not.toHaveProperty('parts.0.content.caption');
});
