/** Files of every kind that people send, on each network: what the model reads of them, and what their sender is told. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readImageHead } from '../../src/agent/fit-image.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { docxOf, pdfOf, photoOf, voiceNote, xlsxOf } from '../media/some-files.ts';
import { blocksOf, type WireBlock } from '../platforms/anthropic/wire.ts';
import { startTranscriber, type Transcribing } from '../platforms/transcriber/server.ts';
import { asRun } from './as-run.ts';
import { readAfter } from './asking.ts';
import { findBreaches, readStore, untilAtRest } from './conservation.ts';
import { discordOf } from './discord-side.ts';
import { signalOf } from './signal-side.ts';
import { openStage, type Stage } from './stage.ts';
import { ada } from './telegram-chat.ts';
import { until } from './until.ts';

const texts = textsFor('en');
let stage: Stage;
let transcriber: Transcribing;
let photo: Buffer = Buffer.alloc(0);

beforeAll(async () => {
  transcriber = await startTranscriber();
  photo = await photoOf(4000, 3000);
  const ends: (() => Promise<void>)[] = [transcriber.close];
  const config = {
    media: { transcriber: { url: transcriber.url } },
    plugins: { files: { readAuthority: 'guest' } },
  };
  stage = await openStage({ config, networks: ['discord', 'signal'], env: asRun }, (end) => ends.push(end));
  await stage.start();
  stage.model.script(() => ({ text: 'read' }));
  return async () => {
    for (const end of ends.toReversed()) await end();
  };
});

type SentFile = { readonly name: string; readonly bytes: Buffer; readonly isVoice?: boolean };
type SendFile = (file: SentFile, text: string) => void;

/** Sends a file as the apps of the network do, and with the type that they would claim: none that is right. */
const networks: Readonly<Record<string, () => SendFile>> = {
  Telegram: () => (file, text) => {
    const sent = stage.telegram.world.addFile({ ...file, mimeType: 'application/octet-stream' });
    stage.telegram.userSends({ from: ada, text, ...(file.isVoice ? { voice: sent } : { document: sent }) });
  },
  Discord: () => (file, text) => {
    const { server, user } = discordOf(stage);
    const { name, bytes, isVoice } = file;
    const voice = { duration_secs: 2, waveform: 'AAAA' };
    const sent = server.world.addFile({ name, bytes, ...(isVoice && { fields: voice }) });
    server.people.sends({
      from: user(501),
      text,
      files: [sent],
      ...(isVoice && { fields: { flags: 8192 } }),
    });
  },
  Signal: () => (file, text) => {
    const { server, user } = signalOf(stage);
    const { name: fileName, bytes, isVoice = false } = file;
    const sent = server.world.addAttachment({ fileName, bytes, contentType: 'application/octet-stream' });
    const fields = { attachments: [{ ...attachmentOf(sent), isVoiceNote: isVoice, voiceNote: isVoice }] };
    server.people.writes({ from: user(501), text, attachments: [sent], ...(isVoice && { fields }) });
  },
};

type SignalFile = { readonly id: string; readonly contentType: string; readonly bytes: Uint8Array };

function attachmentOf({ id, contentType, bytes }: SignalFile) {
  return { id, contentType, filename: null, size: bytes.length };
}

function sayOn(network: string, id: number, text: string): void {
  if (network === 'Telegram') return void stage.telegram.userSends({ from: { ...ada, id }, text });
  stage.person(network === 'Discord' ? 'discord' : 'signal', id).says(text);
}

function said(network: string): readonly string[] {
  if (network === 'Telegram') return stage.telegram.botMessages(ada.id).map(({ text }) => text);
  if (network === 'Discord') return stage.person('discord', 501).standing();
  return stage.person('signal', 501).standing();
}

describe.each(Object.keys(networks))('files on %s', (network) => {
  const send: SendFile = (file, text) => networks[network]?.()(file, text);
  const shownAfter = async (file: SentFile, text: string): Promise<readonly WireBlock[]> => {
    const body = await readAfter(stage, () => send(file, text));
    const last = body.messages.at(-1);
    return last ? blocksOf(last) : [];
  };
  const wordsIn = (blocks: readonly WireBlock[]) => blocks.map(({ text = '' }) => text).join('\n');

  it('shows the model a large photo as a smaller image', async () => {
    const blocks = await shownAfter({ name: 'a.jpg', bytes: photo }, 'What is this?');
    const image = blocks.find(({ type }) => type === 'image');
    const head = readImageHead(Buffer.from(image?.source?.data ?? '', 'base64'));
    expect(head).toMatchObject({ mimeType: 'image/jpeg', width: 1568 });
    expect(wordsIn(blocks)).toContain('What is this?');
  });

  it('shows the model a PDF as a document', async () => {
    const bytes = pdfOf('Rent is due on Monday');
    const blocks = await shownAfter({ name: 'rent.pdf', bytes }, 'When?');
    const document = blocks.find(({ type }) => type === 'document');
    expect(document?.source).toMatchObject({ media_type: 'application/pdf', data: bytes.toString('base64') });
    expect(wordsIn(blocks)).toContain('When?');
    expect(wordsIn(blocks)).not.toContain('Rent is due');
  });

  it.each([
    [
      'a text',
      { name: 'a.txt', bytes: Buffer.from('Grüße\nfrom a file') },
      /<<<untrusted .*\nGrüße\nfrom a file\n<<<end/,
    ],
    ['a Word document', { name: 'a.docx', bytes: docxOf('Dear Ada,') }, /<<<untrusted .*\nDear Ada,\n<<<end/],
    ['a workbook', { name: 'a.xlsx', bytes: xlsxOf('Name', 'Sum') }, /Name\tSum\n1\t2/],
  ])('shows the model the text of %s', async (_, file, text) => {
    const shown = wordsIn(await shownAfter(file, 'Read this.'));
    expect(shown).toMatch(text);
    expect(shown).toContain('Read this.');
  });

  it('answers a voice message by what was said, which its sender can check', async () => {
    transcriber.behaves('json', '/new call me tomorrow');
    const before = readStore(stage.dataDir, 'select id from sessions').length;
    const shown = wordsIn(await shownAfter({ name: 'voice.ogg', bytes: voiceNote(), isVoice: true }, ''));
    expect(shown).toMatch(
      /\[voice message of .*, written down by a machine, perhaps wrongly\]\n\/new call me tomorrow/,
    );
    expect(readStore(stage.dataDir, 'select id from sessions')).toHaveLength(before);
    await until(() => said(network).includes('🎙 “/new call me tomorrow”'), { what: 'the echo' });
  });

  it('lets the agent’s tools read the files of the conversation, and nobody else’s', async () => {
    await shownAfter({ name: 'list.txt', bytes: Buffer.from('milk and bread') }, 'Keep this.');
    const call = { name: 'read', input: { path: 'inbox/list.txt' } };
    const results = async (act: () => unknown) => {
      stage.model.script([{ toolCalls: [call] }, { text: 'done' }]);
      const before = stage.model.requests.length;
      act();
      await until(() => stage.model.requests.length === before + 2, { what: 'the answer to the tool' });
      const last = stage.model.requests.at(-1)?.body.messages.at(-1);
      stage.model.script(() => ({ text: 'read' }));
      return JSON.stringify(last ? blocksOf(last).filter(({ type }) => type === 'tool_result') : []);
    };
    expect(await results(() => sayOn(network, 501, 'Read it again.'))).toContain('milk and bread');
    const other = await results(() => sayOn(network, 577, 'Read it.'));
    expect(other).toContain('"is_error":true');
    expect(other).not.toContain('milk');
  });

  it('answers the words with a file that it can’t read, and says why', async () => {
    const blocks = await shownAfter(
      { name: 'film.mp4', bytes: Buffer.from('\0\0\0\x24ftypisom\0\0', 'latin1') },
      'Look!',
    );
    expect(wordsIn(blocks)).toMatch(/Look!\n\[attachment film\.mp4, video\/mp4, \d+ bytes, not read: /);
    const told = `I couldn’t read “film.mp4” (${texts.fileUnsupported}).`;
    await until(() => said(network).includes(told), { what: 'the notice' });
  });

  it('leaves no file without an end', async () => {
    await untilAtRest(stage.dataDir, 1);
    expect(findBreaches(stage.dataDir)).toEqual([]);
    for (const { content } of readStore(stage.dataDir, 'select content from inbox'))
      for (const file of JSON.parse(String(content)).stored ?? []) {
        expect(file.reading?.kind).not.toBe('pending');
        if (file.kind === 'stored')
          expect(readFileSync(join(stage.dataDir, 'media', file.path)).length).toBeGreaterThan(0);
      }
  });
});
