import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { limitCalls, spokenWords } from '../../src/media/transcriber.ts';
import { createServerTranscriber, type TranscriptionServer } from '../../src/media/transcription-server.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { type answers, startTranscriber, type Transcribing } from '../platforms/transcriber/server.ts';
import { sharedFolder } from '../support/own-folder.ts';
import { patienceMs } from '../support/patience.ts';
import { voiceNote } from './some-files.ts';

const folder = sharedFolder();
const texts = textsFor('en');
let server: Transcribing;
let path = '';
const { signal } = new AbortController();

beforeAll(async () => {
  server = await startTranscriber();
  path = join(folder(), 'voice');
  await writeFile(path, voiceNote());
  return () => server.close();
});

function hear(over: Partial<TranscriptionServer> = {}, mimeType = 'audio/ogg') {
  const transcriber = createServerTranscriber({ url: server.url, timeoutMs: 60_000, texts, ...over });
  return transcriber.transcribe({ path, mimeType }, signal);
}

type Behaviour = keyof typeof answers;

describe('a server that writes voice messages down', () => {
  it.each<Behaviour>(['json', 'vllm', 'plain', 'plain as html'])(
    'understands a transcript in the form %s',
    async (as) => {
      server.behaves(as, 'Grüße aus Ulm');
      expect(await hear()).toEqual({ kind: 'heard', text: 'Grüße aus Ulm' });
    },
  );

  it.each<[Behaviour, string]>([
    ['error in a success', 'Unsupported audio format'],
    ['whisper.cpp refuses', 'failed to read audio data'],
    ['OpenAI refuses', 'Unsupported file format aac'],
    ['FastAPI refuses', 'Field required'],
    ['too large', '413'],
  ])('gives the reason of a server that fails so: %s', async (as, detail) => {
    server.behaves(as);
    expect(await hear()).toEqual({ kind: 'failed', reason: texts.voiceRefused.replace('{detail}', detail) });
  });

  it.each<Behaviour>(['page in a success', 'nothing in a success'])(
    'believes no success without a transcript: %s',
    async (as) => {
      server.behaves(as);
      expect(await hear()).toEqual({ kind: 'failed', reason: texts.voiceNoTranscript });
    },
  );

  it('gives up on a server that hangs up, is not there or answers too late', async () => {
    const away = { kind: 'failed', reason: texts.voiceNoAnswer };
    server.behaves('away');
    expect(await hear()).toEqual(away);
    expect(await hear({ url: 'http://127.0.0.1:9/v1' })).toEqual(away);
    server.behaves('silent');
    expect(await hear({ timeoutMs: 50 })).toEqual(away);
  });

  it('sends a file under a name of its type, and asks for the simplest format', async () => {
    server.behaves('json');
    await hear({ model: 'whisper-1', language: 'de', key: { reveal: () => 'k' } }, 'audio/mp4');
    expect(server.heard.at(-1)).toMatchObject({
      path: '/v1/audio/transcriptions',
      fileName: 'voice.m4a',
      fields: { response_format: 'json', model: 'whisper-1', language: 'de' },
      key: 'Bearer k',
      bytes: voiceNote(),
    });
    await hear({ url: server.url.replace('/v1', '/inference') }, 'audio/aac');
    expect(server.heard.at(-1)).toMatchObject({ path: '/inference', fileName: 'voice.aac', key: undefined });
  });

  it('asks two at a time, however many voice messages come', async () => {
    const gate = Promise.withResolvers<void>();
    server.behaves('json', 'x');
    server.waitsFor(gate.promise);
    const one = createServerTranscriber({ url: server.url, timeoutMs: 60_000, texts });
    const transcriber = limitCalls(one, 2);
    const before = server.heard.length;
    const all = Array.from({ length: 50 }, () =>
      transcriber.transcribe({ path, mimeType: 'audio/ogg' }, signal),
    );
    const heard = () => server.heard.length - before;
    await vi.waitFor(() => expect(heard()).toBe(2), { timeout: patienceMs });
    // Asked past the limit, and after all others: if they weren't waiting, they would have arrived first.
    const last = one.transcribe({ path, mimeType: 'audio/ogg' }, signal);
    await vi.waitFor(() => expect(heard()).toBeGreaterThan(2), { timeout: patienceMs });
    expect(heard()).toBe(3);
    gate.resolve();
    await last;
    expect(await Promise.all(all)).toEqual(Array.from({ length: 50 }, () => ({ kind: 'heard', text: 'x' })));
    expect(heard()).toBe(51);
    expect(server.mostAtOnce).toBeLessThanOrEqual(3);
  });
});

describe('a transcript', () => {
  it.each([
    [' hello\n', 'hello'],
    ['[BLANK_AUDIO]', ''],
    ['(silence) ♪', ''],
    ['  ', ''],
    ['[laughs] well', '[laughs] well'],
    ['Ja (vielleicht)', 'Ja (vielleicht)'],
  ])('takes the words of the transcript %j', (transcript, words) => {
    expect(spokenWords(transcript)).toBe(words);
  });
});
